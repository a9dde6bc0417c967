//! What the container runtime reports about a pod.

use std::net::IpAddr;

use kennel_types::Timestamp;

#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// The newest sandbox.
    pub sandbox: Option<Sandbox>,
    /// All runs of the pod's containers that the runtime still has, in any order.
    pub runs: Vec<Run>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sandbox {
    /// The runtime's id.
    pub id: String,
    /// Containers can be started in it.
    pub ready: bool,
    /// Empty for pods on the host's network.
    pub addresses: Vec<IpAddr>,
    /// How many sandboxes the pod had before this one.
    pub attempt: u32,
}

/// One run of a container: each restart is a new run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The container's name.
    pub name: String,
    /// The runtime's id.
    pub id: String,
    /// How many runs the container had before this one.
    pub attempt: u32,
    /// The id of its sandbox.
    pub sandbox: String,
    /// The image in the container's spec when the run was created. A changed image needs a new run.
    pub image: String,
    /// The image as the runtime resolved it.
    pub image_id: String,
    pub state: State,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    Created,
    Running { started_at: Timestamp },
    Exited(Exit),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exit {
    pub started_at: Timestamp,
    pub finished_at: Timestamp,
    pub code: i32,
    /// The runtime's reason, such as `OOMKilled`; empty for none.
    pub reason: String,
    /// The termination message.
    pub message: String,
}

impl Observed {
    /// The newest run of a container.
    pub fn latest(&self, name: &str) -> Option<&Run> {
        let runs = self.runs.iter().filter(|run| run.name == name);
        runs.max_by_key(|run| run.attempt)
    }

    /// The run before the newest.
    pub fn previous(&self, name: &str) -> Option<&Run> {
        let newest = self.latest(name)?.attempt;
        let older = |run: &&Run| run.name == name && run.attempt < newest;
        self.runs.iter().filter(older).max_by_key(|run| run.attempt)
    }

    pub fn running(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(|run| run.is_running())
    }
}

impl Run {
    pub fn is_running(&self) -> bool {
        matches!(self.state, State::Running { .. })
    }

    pub fn exit(&self) -> Option<&Exit> {
        match &self.state {
            State::Exited(exit) => Some(exit),
            State::Created | State::Running { .. } => None,
        }
    }
}
