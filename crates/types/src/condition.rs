//! Conditions of pods, nodes and DaemonSets.

use serde::{Deserialize, Deserializer};

use crate::meta::null_as_default;
use crate::text_enum::text_enum;
use crate::time::Timestamp;

text_enum! {
    pub enum ConditionStatus, else Unknown {
        True = "True",
        False = "False",
        #[default]
        Unknown = "Unknown",
    }
}

impl From<bool> for ConditionStatus {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

text_enum! {
    /// The type of a condition. Types that no rule names are [`ConditionType::Other`].
    #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum ConditionType, else Other(Box<str>) {
        // Pods.
        ContainersReady = "ContainersReady",
        DisruptionTarget = "DisruptionTarget",
        Initialized = "Initialized",
        PodReadyToStartContainers = "PodReadyToStartContainers",
        PodScheduled = "PodScheduled",
        // Pods and nodes.
        Ready = "Ready",
        // Nodes.
        DiskPressure = "DiskPressure",
        MemoryPressure = "MemoryPressure",
        NetworkUnavailable = "NetworkUnavailable",
        PidPressure = "PIDPressure",
        // DaemonSets.
        Stalled = "Stalled",
    }
}

crate::meta::deserialize_from_str!(ConditionStatus, ConditionType);

/// A condition of a pod, a node or a DaemonSet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Condition {
    pub r#type: ConditionType,
    #[serde(deserialize_with = "null_as_default")]
    pub status: ConditionStatus,
    #[serde(deserialize_with = "null_as_default")]
    pub reason: String,
    #[serde(deserialize_with = "null_as_default")]
    pub message: String,
    pub last_transition_time: Option<Timestamp>,
    /// Of nodes.
    pub last_heartbeat_time: Option<Timestamp>,
}

impl Condition {
    pub fn is_true(&self) -> bool {
        self.status == ConditionStatus::True
    }
}

/// The condition of a type, if there is one.
pub fn find<'a>(conditions: &'a [Condition], r#type: &ConditionType) -> Option<&'a Condition> {
    conditions
        .iter()
        .find(|condition| condition.r#type == *r#type)
}
