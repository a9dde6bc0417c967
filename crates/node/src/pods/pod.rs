//! A pod that this node is to run, as its source gave it.

use kennel_core::pod::Spec;
use serde_json::Value;

use crate::runtime::PodId;

/// Where a pod comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The API.
    Api,
    /// A file on this machine. What the API shows of it is a mirror.
    File,
}

/// See the [module](self). Does not change; a change of the pod is another one.
#[derive(Clone, Debug)]
pub struct Pod {
    /// Which one. A pod of a file has a uid of its own, which its mirror in the API has not.
    pub id: PodId,
    /// Where it comes from.
    pub origin: Origin,
    /// All of it: metadata, spec and, for pods of the API, status.
    pub object: Value,
    /// What decides over its life.
    pub spec: Spec,
}

/// Why an object is no pod that could be run.
#[derive(Debug, thiserror::Error)]
pub enum PodError {
    /// No name or no uid.
    #[error("it has no {0}")]
    Missing(&'static str),
    /// A field of the spec is not what it must be.
    #[error(transparent)]
    Spec(#[from] serde_json::Error),
}

impl Pod {
    /// Reads a pod.
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
        let spec = Spec::parse(&object["spec"])?;
        Ok(Self {
            id,
            origin,
            object,
            spec,
        })
    }

    /// `metadata`.
    pub fn metadata(&self) -> &Value {
        &self.object["metadata"]
    }

    /// `spec`, whole.
    pub fn raw_spec(&self) -> &Value {
        &self.object["spec"]
    }

    /// A container of `spec.containers` or `spec.initContainers`, whole.
    pub fn raw_container(&self, name: &str) -> Option<&Value> {
        let lists = ["containers", "initContainers"];
        let lists = lists
            .iter()
            .filter_map(|list| self.raw_spec()[list].as_array());
        lists.flatten().find(|container| container["name"] == name)
    }

    /// Has it the machine's network?
    pub fn host_network(&self) -> bool {
        self.raw_spec()["hostNetwork"] == true
    }

    /// Somebody has asked for its end.
    pub fn is_deleted(&self) -> bool {
        self.metadata()["deletionTimestamp"].is_string()
    }
}
