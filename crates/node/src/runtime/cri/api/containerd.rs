//! Messages of containerd's own services: task events, which report exits at once (the CRI of many versions does not), and
//! signals (the CRI of most versions has none).

use super::{Call, Empty};

/// The method that streams events.
pub(crate) const SUBSCRIBE: &str = "/containerd.services.events.v1.Events/Subscribe";

/// The topic of process exits.
pub(crate) const TASK_EXIT: &str = "/tasks/exit";

messages! {
    SubscribeRequest {
        1 => filters: Vec<String> as string repeated,
    }

    Envelope {
        2 => namespace: String as string,
        3 => topic: String as string,
        4 => event: Option<Any> as message optional,
    }

    Any {
        2 => value: Vec<u8> as bytes = "vec",
    }

    /// A process has exited: the container's main process if both ids are equal, else an executed command.
    TaskExit {
        1 => container_id: String as string,
        2 => id: String as string,
    }

    /// Sends a signal to a container's main process.
    KillRequest {
        1 => container_id: String as string,
        3 => signal: u32 as uint32,
    }

    /// Waits for the exit of a container's main process.
    WaitRequest {
        1 => container_id: String as string,
    }
}

impl Call for KillRequest {
    type Response = Empty;
    const PATH: &'static str = "/containerd.services.tasks.v1.Tasks/Kill";
}

impl Call for WaitRequest {
    type Response = Empty;
    const PATH: &'static str = "/containerd.services.tasks.v1.Tasks/Wait";
}
