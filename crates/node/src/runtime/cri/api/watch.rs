//! Messages of containerd's own services, which all its versions have: events, which say at once when a
//! container has ended (the CRI of many versions does not), and signals (the CRI of most versions has none).

use super::{Call, Done};

/// Where they are subscribed to.
pub(crate) const SUBSCRIBE: &str = "/containerd.services.events.v1.Events/Subscribe";

/// The topic of ends.
pub(crate) const TASK_EXIT: &str = "/tasks/exit";

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct SubscribeRequest {
    #[prost(string, repeated, tag = "1")]
    pub(crate) filters: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Envelope {
    #[prost(string, tag = "2")]
    pub(crate) namespace: String,
    #[prost(string, tag = "3")]
    pub(crate) topic: String,
    #[prost(message, optional, tag = "4")]
    pub(crate) event: Option<Any>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Any {
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) value: Vec<u8>,
}

/// A process has ended: the container's first one if both ids are the same, else one that was run in it.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct TaskExit {
    #[prost(string, tag = "1")]
    pub(crate) container_id: String,
    #[prost(string, tag = "2")]
    pub(crate) id: String,
}

/// Sends a signal to a container's first process.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct KillRequest {
    #[prost(string, tag = "1")]
    pub(crate) container_id: String,
    #[prost(uint32, tag = "3")]
    pub(crate) signal: u32,
}

/// Waits for the end of a container's first process.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct WaitRequest {
    #[prost(string, tag = "1")]
    pub(crate) container_id: String,
}

impl Call for KillRequest {
    type Answer = Done;
    const PATH: &'static str = "/containerd.services.tasks.v1.Tasks/Kill";
}

impl Call for WaitRequest {
    type Answer = Done;
    const PATH: &'static str = "/containerd.services.tasks.v1.Tasks/Wait";
}
