//! Kills all processes of a container; none runs any more when this returns.
//!
//! A process belongs to a container if it is in its cgroup or, where there are no cgroups, has the container's id in its
//! environment; its descendants belong, too. Processes in uninterruptible sleep are waited for: the container must not
//! be reported as exited while one is left.

use std::collections::BTreeSet;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::cgroup::Group;
use crate::identity::{self, Stat};

/// The environment variable that identifies a container's processes where there are no cgroups.
pub const CONTAINER_ID_VARIABLE: &str = "KENNEL_CONTAINER_ID";
/// The delay between two scans doubles from the first to the second: most processes exit at once.
const SCAN_DELAY: Duration = Duration::from_millis(1);
const SCAN_DELAY_MAX: Duration = Duration::from_millis(500);

/// How to find the processes.
pub struct ContainerProcesses<'a> {
    pub id: &'a str,
    pub group: Option<&'a Group>,
    /// All descendants of this process belong to the container; the process itself does not.
    pub parent: Option<i32>,
    /// The container's main process.
    pub process: Option<&'a identity::Identity>,
}

impl ContainerProcesses<'_> {
    /// Returns when no process is left, however long it takes.
    pub fn kill_all(&self) {
        let mut delay = SCAN_DELAY;
        loop {
            if let Some(group) = self.group {
                group.kill();
            }
            let left = self.find();
            if left.is_empty() {
                return;
            }
            for pid in left.into_iter().filter_map(Pid::from_raw) {
                let _gone = kill_process(pid, Signal::KILL);
            }
            std::thread::sleep(delay);
            delay = (delay * 2).min(SCAN_DELAY_MAX);
        }
    }

    /// The pids of those that still run.
    pub fn find(&self) -> BTreeSet<i32> {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let mut found = BTreeSet::new();
        if let Some(group) = self.group {
            found.extend(group.processes());
        } else {
            let variable = format!("{CONTAINER_ID_VARIABLE}={}", self.id);
            found.extend(
                identity::all()
                    .into_iter()
                    .filter(|&pid| has_variable(pid, &variable)),
            );
        }
        if let Some(process) = self.process.filter(|process| process.is_alive()) {
            found.insert(process.pid);
            found.extend(identity::descendants(process.pid));
        }
        if let Some(parent) = self.parent {
            found.extend(identity::descendants(parent));
        }
        found.remove(&own);
        found.retain(|&pid| Stat::read(pid).is_some_and(|stat| !stat.is_dead()));
        found
    }
}

fn has_variable(pid: i32, variable: &str) -> bool {
    let env = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    env.split(|byte| *byte == 0)
        .any(|entry| entry == variable.as_bytes())
}
