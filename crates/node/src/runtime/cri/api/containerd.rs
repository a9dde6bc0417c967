//! Messages of containerd's own services: task events, which report exits at once (the CRI of many versions does not), and
//! signals (the CRI of most versions has none).

use super::{Call, Empty};

/// The method that streams events.
pub(crate) const SUBSCRIBE: &str = "/containerd.services.events.v1.Events/Subscribe";

/// The topic of process exits.
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

/// A process has exited: the container's main process if both ids are equal, else an executed command.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct TaskExit {
    #[prost(string, tag = "1")]
    pub(crate) container_id: String,
    #[prost(string, tag = "2")]
    pub(crate) id: String,
}

/// Sends a signal to a container's main process.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct KillRequest {
    #[prost(string, tag = "1")]
    pub(crate) container_id: String,
    #[prost(uint32, tag = "3")]
    pub(crate) signal: u32,
}

/// Waits for the exit of a container's main process.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct WaitRequest {
    #[prost(string, tag = "1")]
    pub(crate) container_id: String,
}

impl Call for KillRequest {
    type Response = Empty;
    const PATH: &'static str = "/containerd.services.tasks.v1.Tasks/Kill";
}

impl Call for WaitRequest {
    type Response = Empty;
    const PATH: &'static str = "/containerd.services.tasks.v1.Tasks/Wait";
}
