//! Groups of processes that the kernel counts, bounds and ends together: one per container, where the
//! machine lets us. Both versions, also side by side.
//!
//! A group is a path below the top of every hierarchy that we use. What it may use is written before
//! anything joins it. Here nothing decides which container gets what.

mod files;

use std::io;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};

/// Where our own groups are, for pods that name none. Shims live there, too.
pub const OWN: &str = "kennel";
/// The group of all shims: out of the agent's, which the machine may end as a whole.
pub const SHIMS: &str = "kennel/shims";
/// How often an emptied group is asked to go: its last processes need a moment.
const PATIENCE: u32 = 400;
const MOMENT: std::time::Duration = std::time::Duration::from_millis(5);

/// What a group may use; 0 for no bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Its weight for the processor.
    pub cpu_shares: u64,
    /// In each period of so many microseconds …
    pub cpu_period: u64,
    /// … it gets so many.
    pub cpu_quota: i64,
    /// Bytes.
    pub memory: u64,
}

/// What a group uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Memory that cannot be given back, in bytes.
    pub memory: u64,
    /// Processor time, in nanoseconds.
    pub cpu: u64,
}

/// The hierarchies of this machine that we use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cgroups(Vec<Hierarchy>);

/// One tree of groups.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hierarchy {
    point: PathBuf,
    kind: Kind,
}

/// What a tree counts or bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// Version 1, with these controllers; `name=systemd` for the one that only names.
    First(Vec<String>),
    /// Version 2.
    Second,
}

/// A group, in all hierarchies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    all: Cgroups,
    path: String,
}

impl Cgroups {
    /// Those that are mounted.
    pub fn find() -> Self {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        Self(mounts.lines().filter_map(Hierarchy::parse).collect())
    }

    /// May we make groups? If not, why.
    pub fn probe(&self) -> Result<(), String> {
        if self.0.is_empty() {
            return Err("no cgroups are mounted".to_owned());
        }
        // A new one: what is there already may be somebody else's.
        let trial = self.group(&format!("{OWN}/trial-{}", own()));
        let made = trial.make(&Bounds::default());
        trial.remove_if_empty();
        made.map_err(|error| format!("no cgroup can be made: {error}"))
    }

    /// A group by its path.
    pub fn group(&self, path: &str) -> Group {
        Group {
            all: self.clone(),
            path: path.trim_matches('/').to_owned(),
        }
    }
}

impl Hierarchy {
    /// A line of `mountinfo`. Controllers that we have no use for are left alone.
    fn parse(line: &str) -> Option<Self> {
        let (before, after) = line.split_once(" - ")?;
        let point = PathBuf::from(before.split(' ').nth(4)?);
        let mut fields = after.split(' ');
        let kind = match fields.next()? {
            "cgroup2" => Kind::Second,
            "cgroup" => {
                let used = [
                    "cpu",
                    "cpuacct",
                    "memory",
                    "pids",
                    "freezer",
                    "name=systemd",
                ];
                let options = fields.nth(1)?.split(',');
                let ours: Vec<String> = options
                    .filter(|option| used.contains(option))
                    .map(str::to_owned)
                    .collect();
                if ours.is_empty() {
                    return None;
                }
                Kind::First(ours)
            }
            _ => return None,
        };
        Some(Self { point, kind })
    }

    fn has(&self, controller: &str) -> bool {
        match &self.kind {
            Kind::First(controllers) => controllers.iter().any(|its| its == controller),
            Kind::Second => true,
        }
    }
}

impl Group {
    fn dirs(&self) -> impl Iterator<Item = (&Hierarchy, PathBuf)> {
        self.all
            .0
            .iter()
            .map(|hierarchy| (hierarchy, hierarchy.point.join(&self.path)))
    }

    /// Makes it, and says what it may use.
    pub fn make(&self, bounds: &Bounds) -> io::Result<()> {
        for (hierarchy, dir) in self.dirs() {
            make(hierarchy, &self.path, &dir)?;
            for (file, value) in files::bounds(&hierarchy.kind, bounds) {
                files::set(&dir.join(file), &value)?;
            }
        }
        Ok(())
    }

    /// Takes the calling process in, and all that it will start.
    pub fn join(&self) -> io::Result<()> {
        for (_, dir) in self.dirs() {
            std::fs::write(dir.join("cgroup.procs"), "0")?;
        }
        Ok(())
    }

    /// Takes another process in.
    pub fn take(&self, pid: u32) -> io::Result<()> {
        for (_, dir) in self.dirs() {
            std::fs::write(dir.join("cgroup.procs"), pid.to_string())?;
        }
        Ok(())
    }

    /// Takes it away if nobody is in it.
    pub fn remove_if_empty(&self) {
        for (_, dir) in self.dirs() {
            // Gone, or in use.
            let _stays = std::fs::remove_dir(dir);
        }
        self.prune();
    }

    /// Those in it.
    pub fn processes(&self) -> Vec<i32> {
        let mut found: Vec<i32> = self
            .dirs()
            .filter_map(|(_, dir)| std::fs::read_to_string(dir.join("cgroup.procs")).ok())
            .flat_map(|text| {
                text.lines()
                    .filter_map(|pid| pid.parse().ok())
                    .collect::<Vec<_>>()
            })
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Ends all in it. They are stopped first: one that starts others faster than it is found would
    /// escape.
    pub fn kill(&self) {
        let dirs: Vec<_> = self.dirs().collect();
        let freezers = dirs
            .iter()
            .filter(|(its, _)| its.kind != Kind::Second && its.has("freezer"));
        let freezers: Vec<_> = freezers.map(|(_, dir)| dir.join("freezer.state")).collect();
        for (hierarchy, dir) in &dirs {
            if hierarchy.kind == Kind::Second {
                // A kernel without this file has the others below.
                let _absent = std::fs::write(dir.join("cgroup.kill"), "1");
            }
        }
        for freezer in &freezers {
            let _gone = std::fs::write(freezer, "FROZEN");
        }
        for pid in self.processes() {
            if let Some(pid) = Pid::from_raw(pid).filter(|_| pid != own()) {
                let _gone = kill_process(pid, Signal::KILL);
            }
        }
        for freezer in &freezers {
            let _gone = std::fs::write(freezer, "THAWED");
        }
    }

    /// Takes it away, and the groups above that this leaves empty. Fine if it is gone; false if somebody
    /// is still in it.
    pub fn remove(&self) -> bool {
        let gone = |dir: &Path| match std::fs::remove_dir(dir) {
            Ok(()) => true,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        for _ in 0..PATIENCE {
            if self.dirs().all(|(_, dir)| gone(&dir)) {
                self.prune();
                return true;
            }
            std::thread::sleep(MOMENT);
        }
        false
    }

    fn prune(&self) {
        for (hierarchy, dir) in self.dirs() {
            let above = dir
                .ancestors()
                .skip(1)
                .take_while(|above| *above != hierarchy.point);
            // The first that is in use ends it.
            let _used = above.map(std::fs::remove_dir).find(Result::is_err);
        }
    }

    /// Did the kernel kill something in it for want of memory?
    pub fn ran_out_of_memory(&self) -> bool {
        self.dirs().any(|(hierarchy, dir)| {
            let file = match hierarchy.kind {
                Kind::First(_) => "memory.oom_control",
                Kind::Second => "memory.events",
            };
            files::field(&dir.join(file), "oom_kill").is_some_and(|kills| kills > 0)
        })
    }

    /// What those in it use.
    pub fn usage(&self) -> Option<Usage> {
        let mut usage = Usage::default();
        let mut known = false;
        for (hierarchy, dir) in self.dirs() {
            if let Some(memory) = files::memory(&hierarchy.kind, &dir) {
                usage.memory = memory;
                known = true;
            }
            if let Some(cpu) = files::cpu(&hierarchy.kind, &dir) {
                usage.cpu = cpu;
                known = true;
            }
        }
        known.then_some(usage)
    }
}

/// Somebody may take away a group above, which was empty, in between.
fn make(hierarchy: &Hierarchy, path: &str, dir: &Path) -> io::Result<()> {
    let mut tries = 0;
    loop {
        if hierarchy.kind == Kind::Second {
            files::hand_down(&hierarchy.point, path);
        }
        match std::fs::create_dir_all(dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && tries < 3 => tries += 1,
            made => return made,
        }
    }
}

fn own() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hierarchies_are_read_from_the_mounts() {
        let check = |line: &str, expected: Option<(&str, Kind)>| {
            let expected = expected.map(|(point, kind)| Hierarchy {
                point: point.into(),
                kind,
            });
            assert_eq!(Hierarchy::parse(line), expected, "{line}");
        };
        let first =
            |names: &[&str]| Kind::First(names.iter().map(|&name| name.to_owned()).collect());
        check(
            "33 24 0:28 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct",
            Some(("/sys/fs/cgroup/cpu,cpuacct", first(&["cpu", "cpuacct"]))),
        );
        check(
            "34 24 0:29 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd",
            Some(("/sys/fs/cgroup/systemd", first(&["name=systemd"]))),
        );
        check(
            "35 24 0:30 / /sys/fs/cgroup/devices rw - cgroup cgroup rw,devices",
            None,
        );
        check(
            "24 23 0:22 / /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate",
            Some(("/sys/fs/cgroup", Kind::Second)),
        );
        check("22 1 8:1 / / rw - ext4 /dev/vda rw", None);
    }
}
