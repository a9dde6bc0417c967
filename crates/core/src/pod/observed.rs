//! What runs, as the runtime tells it.

use std::net::IpAddr;

/// Seconds since the epoch, by the wall clock.
pub type Seconds = i64;

/// All that a runtime has of one pod.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// Its newest sandbox.
    pub sandbox: Option<Sandbox>,
    /// All runs of its containers that the runtime still has, in any order.
    pub runs: Vec<Run>,
}

/// What the containers of a pod share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sandbox {
    /// What the runtime calls it.
    pub id: String,
    /// Containers may be started in it.
    pub ready: bool,
    /// Its addresses; none if it has its node's.
    pub addresses: Vec<IpAddr>,
    /// How many sandboxes the pod had before this one.
    pub attempt: u32,
}

/// One run of a container. A restart is another run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The container's name.
    pub name: String,
    /// What the runtime calls this run.
    pub id: String,
    /// How many runs there were before this one.
    pub attempt: u32,
    /// The sandbox it belongs to.
    pub sandbox: String,
    /// The image that the container's spec named when it was made: another one needs another run.
    pub image: String,
    /// The image as the runtime resolved it.
    pub image_id: String,
    /// How it is.
    pub state: State,
}

/// How a run is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Made and not started.
    Created,
    /// It runs.
    Running {
        /// Since when.
        since: Seconds,
    },
    /// It has ended.
    Exited(Exit),
}

/// How a run ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exit {
    /// When it began.
    pub since: Seconds,
    /// When it ended.
    pub until: Seconds,
    /// What it returned.
    pub code: i32,
    /// The runtime's reason, such as `OOMKilled`; empty for none.
    pub reason: String,
    /// Its last words.
    pub message: String,
}

impl Observed {
    /// The newest run of a container.
    pub fn latest(&self, name: &str) -> Option<&Run> {
        let runs = self.runs.iter().filter(|run| run.name == name);
        runs.max_by_key(|run| run.attempt)
    }

    /// The newest run that has ended before the newest one.
    pub fn previous(&self, name: &str) -> Option<&Run> {
        let newest = self.latest(name)?.attempt;
        let older = |run: &&Run| run.name == name && run.attempt < newest;
        self.runs.iter().filter(older).max_by_key(|run| run.attempt)
    }

    /// Runs that are alive.
    pub fn alive(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(|run| run.is_running())
    }
}

impl Run {
    /// Is it alive?
    pub fn is_running(&self) -> bool {
        matches!(self.state, State::Running { .. })
    }

    /// How it ended, if it has.
    pub fn exit(&self) -> Option<&Exit> {
        match &self.state {
            State::Exited(exit) => Some(exit),
            State::Created | State::Running { .. } => None,
        }
    }
}
