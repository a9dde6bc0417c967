//! Ends all that belongs to a container, so that nothing of it runs any more when this returns.
//!
//! Belonging is: being in its cgroup; where there is none, carrying its id in the environment it was
//! started with; having been started by one of those. What the kernel will not end (a process that waits
//! for a dead disk) is waited for: to say that it has ended would be a lie.

use std::collections::BTreeSet;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::cgroup::Group;
use crate::identity::{self, Stat};

/// The variable that marks what a container started, where there are no cgroups.
pub const MARK: &str = "KENNEL_CONTAINER_ID";
/// Between two looks at what is left: short at first, since most go at once.
const FIRST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(500);

/// Whom to look for.
pub struct Belongings<'a> {
    /// The container's id.
    pub id: &'a str,
    /// Its cgroup.
    pub group: Option<&'a Group>,
    /// Whose descendants belong to it; it stays itself.
    pub parent: Option<i32>,
    /// Its process.
    pub process: Option<&'a identity::Identity>,
}

impl Belongings<'_> {
    /// Ends them, however long it takes.
    pub fn end(&self) {
        let mut pause = FIRST;
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
            std::thread::sleep(pause);
            pause = (pause * 2).min(LONGEST);
        }
    }

    /// Those that still run.
    fn find(&self) -> BTreeSet<i32> {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let mut found = BTreeSet::new();
        if let Some(group) = self.group {
            found.extend(group.processes());
        } else {
            let mark = format!("{MARK}={}", self.id);
            found.extend(
                identity::all()
                    .into_iter()
                    .filter(|&pid| is_marked(pid, &mark)),
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

fn is_marked(pid: i32, mark: &str) -> bool {
    let env = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    env.split(|byte| *byte == 0)
        .any(|entry| entry == mark.as_bytes())
}
