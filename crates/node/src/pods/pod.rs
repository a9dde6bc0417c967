//! A pod that this node runs, as its source gave it.

use kennel_types::{ConditionStatus, ConditionType, PodPhase, PodSpec};
use serde::Deserialize as _;
use serde_json::Value;

use crate::json::{all_containers, list, text};
use crate::runtime::PodId;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Api,
    /// A manifest on this machine: a static pod. The API server has a mirror pod of it.
    File,
}

/// Immutable: each change of the pod makes a new one.
#[derive(Clone, Debug)]
pub struct Pod {
    /// A static pod's uid differs from that of its mirror pod.
    pub id: PodId,
    pub origin: Origin,
    /// The whole object: metadata, spec and, for pods of the API, status.
    pub object: Value,
    pub spec: PodSpec,
}

/// Why an object is not a pod that can run.
#[derive(Debug, thiserror::Error)]
pub enum PodError {
    #[error("it has no {0}")]
    Missing(&'static str),
    #[error(transparent)]
    Spec(#[from] serde_json::Error),
}

impl Pod {
    pub fn parse(object: Value, origin: Origin) -> Result<Self, PodError> {
        let text = |key: &'static str| {
            let text = object["metadata"][key].as_str();
            text.map(str::to_owned).ok_or(PodError::Missing(key))
        };
        let id = PodId {
            namespace: text("namespace")?,
            name: text("name")?,
            uid: text("uid")?,
        };
        let spec = PodSpec::deserialize(&object["spec"])?;
        Ok(Self {
            id,
            origin,
            object,
            spec,
        })
    }

    pub fn metadata(&self) -> &Value {
        &self.object["metadata"]
    }

    pub fn raw_spec(&self) -> &Value {
        &self.object["spec"]
    }

    /// The status that the API server had when it sent this pod.
    pub fn api_status(&self) -> &Value {
        &self.object["status"]
    }

    /// The phase in [`Self::api_status`].
    pub fn phase(&self) -> PodPhase {
        phase(self.api_status())
    }

    /// A container, init container or ephemeral container, as in the object.
    pub fn raw_container(&self, name: &str) -> Option<&Value> {
        let mut all = all_containers(self.raw_spec());
        all.find(|container| container["name"] == name)
    }

    pub fn host_network(&self) -> bool {
        self.raw_spec()["hostNetwork"] == true
    }

    /// Whether it has a deletion timestamp.
    pub fn is_deleted(&self) -> bool {
        self.metadata()["deletionTimestamp"].is_string()
    }
}

/// The phase in a pod's status.
pub fn phase(status: &Value) -> PodPhase {
    text(status, "phase").into()
}

/// The status of a condition in a pod's or a node's status.
pub fn condition_status(status: &Value, r#type: &ConditionType) -> Option<ConditionStatus> {
    let mut conditions = list(status, "conditions").iter();
    let condition = conditions.find(|condition| condition["type"] == r#type.as_str());
    condition.map(|condition| text(condition, "status").into())
}
