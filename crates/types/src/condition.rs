//! Conditions of pods and nodes.

use std::fmt;

use serde::{Deserialize, Deserializer};

use crate::meta::null_as_default;
use crate::time::Timestamp;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConditionStatus {
    True,
    False,
    #[default]
    Unknown,
}

impl ConditionStatus {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<bool> for ConditionStatus {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

impl From<&str> for ConditionStatus {
    fn from(text: &str) -> Self {
        match text {
            "True" => Self::True,
            "False" => Self::False,
            _ => Self::Unknown,
        }
    }
}

impl fmt::Display for ConditionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The type of a condition. Types that no rule names are [`ConditionType::Other`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConditionType {
    // Pods.
    ContainersReady,
    DisruptionTarget,
    Initialized,
    PodReadyToStartContainers,
    PodScheduled,
    // Pods and nodes.
    Ready,
    // Nodes.
    DiskPressure,
    MemoryPressure,
    NetworkUnavailable,
    PidPressure,
    Other(Box<str>),
}

impl ConditionType {
    pub fn as_str(&self) -> &str {
        match self {
            Self::ContainersReady => "ContainersReady",
            Self::DisruptionTarget => "DisruptionTarget",
            Self::Initialized => "Initialized",
            Self::PodReadyToStartContainers => "PodReadyToStartContainers",
            Self::PodScheduled => "PodScheduled",
            Self::Ready => "Ready",
            Self::DiskPressure => "DiskPressure",
            Self::MemoryPressure => "MemoryPressure",
            Self::NetworkUnavailable => "NetworkUnavailable",
            Self::PidPressure => "PIDPressure",
            Self::Other(text) => text,
        }
    }
}

impl From<&str> for ConditionType {
    fn from(text: &str) -> Self {
        match text {
            "ContainersReady" => Self::ContainersReady,
            "DisruptionTarget" => Self::DisruptionTarget,
            "Initialized" => Self::Initialized,
            "PodReadyToStartContainers" => Self::PodReadyToStartContainers,
            "PodScheduled" => Self::PodScheduled,
            "Ready" => Self::Ready,
            "DiskPressure" => Self::DiskPressure,
            "MemoryPressure" => Self::MemoryPressure,
            "NetworkUnavailable" => Self::NetworkUnavailable,
            "PIDPressure" => Self::PidPressure,
            other => Self::Other(other.into()),
        }
    }
}

impl Default for ConditionType {
    fn default() -> Self {
        Self::Other("".into())
    }
}

impl fmt::Display for ConditionType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

crate::meta::deserialize_from_str!(ConditionStatus, ConditionType);

/// A condition of a pod or a node.
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
