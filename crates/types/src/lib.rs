//! Partial Kubernetes API types: the fields of pods, nodes, services and DaemonSets that some crate reads, and the
//! enums (verbs, status reasons, pod phases, condition types) and time types that all of them share.
//!
//! A reader that needs another field adds it here. Types that only one crate writes stay in that crate.
//! Absent and `null` fields decode to their default; unknown fields are skipped without allocating.
//!
//! This crate holds data only: no rules, no I/O, no clock.

pub mod condition;
pub mod daemonset;
pub mod event;
pub mod lease;
pub mod meta;
pub mod node;
pub mod pod;
pub mod reason;
#[cfg(feature = "client")]
mod resource;
pub mod service;
pub mod taint;
mod text_enum;
pub mod time;
pub mod verb;
pub mod version;

pub use condition::{Condition, ConditionStatus, ConditionType};
pub use daemonset::{DaemonSet, DaemonSetStatus};
pub use lease::{Lease, LeaseSpec};
pub use meta::{Identity, Namespace, NamespacePhase};
pub use node::{Node, NodeSpec, NodeStatus};
pub use pod::{
    Container, ContainerHealth, ContainerStatus, Pod, PodPhase, PodSpec, PodStatus, Probe,
    ProbeKind, RestartPolicy, Waiting,
};
pub use reason::Reason;
pub use service::{EndpointSlice, Service, ServiceType};
pub use taint::{Taint, TaintEffect};
pub use time::{Monotonic, Timestamp};
pub use verb::Verb;
