//! Control groups: one per container, where we may create them. Versions 1 and 2, also in hybrid mode.
//!
//! A group is a path in every hierarchy that we use. Its limits are written before a process joins it.

mod files;
mod stats;
mod transfers;

use std::io;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};

pub use self::stats::Stats;
pub use self::transfers::{Devices, Transfers};

/// The parent of all our groups. Others, such as a kubelet's `/kubepods`, are left alone, also when they are empty.
pub const ROOT: &str = "kennel";
/// The group of all shims, outside of the agent's, which the service manager may kill as a whole.
pub const SHIMS: &str = "kennel/shims";
/// Attempts to remove a group: killed processes need a moment to leave it.
const REMOVE_ATTEMPTS: u32 = 400;
const REMOVE_DELAY: std::time::Duration = std::time::Duration::from_millis(5);

/// 0 means unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    pub cpu_shares: u64,
    /// Microseconds.
    pub cpu_period: u64,
    /// Microseconds per period.
    pub cpu_quota: i64,
    /// Bytes.
    pub memory: u64,
    /// Processes and threads.
    pub pids: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The working set, in bytes.
    pub memory: u64,
    /// CPU time, in nanoseconds.
    pub cpu: u64,
}

/// The mounted hierarchies that we use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cgroups(Vec<Hierarchy>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Hierarchy {
    mount_point: PathBuf,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// With these controllers; `name=systemd` has none.
    V1(Vec<String>),
    V2,
}

/// A group, in all hierarchies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    all: Cgroups,
    path: String,
}

impl Cgroups {
    pub fn find() -> Self {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let mut all: Vec<Hierarchy> = mounts.lines().filter_map(Hierarchy::parse).collect();
        // Device rules and the accounts of block devices are used where they can be; in a container, their hierarchies are
        // often read-only.
        all.retain(|hierarchy| !hierarchy.kind.is_optional() || hierarchy.is_writable());
        Self(all)
    }

    /// Whether groups can have device rules: version 2 has no files for them.
    pub fn has_device_rules(&self) -> bool {
        self.0.iter().any(|hierarchy| hierarchy.kind.has_devices())
    }

    /// Checks that we may create groups.
    pub fn probe(&self) -> io::Result<()> {
        if self.0.is_empty() {
            return Err(io::Error::other("no cgroups are mounted"));
        }
        // A new name: an existing group may belong to another process.
        let trial = self.group(&format!("{ROOT}/trial-{}", own()));
        let created = trial.create(&Limits::default());
        trial.remove_if_empty();
        created.map_err(|error| io::Error::other(format!("cannot create cgroups: {error}")))
    }

    pub fn group(&self, path: &str) -> Group {
        Group {
            all: self.clone(),
            path: path.trim_matches('/').to_owned(),
        }
    }
}

impl Hierarchy {
    /// Parses a line of `mountinfo`. `None` for hierarchies without a controller that we use.
    fn parse(line: &str) -> Option<Self> {
        let (before, after) = line.split_once(" - ")?;
        let mount_point = PathBuf::from(before.split(' ').nth(4)?);
        let mut fields = after.split(' ');
        let kind = match fields.next()? {
            "cgroup2" => Kind::V2,
            "cgroup" => {
                let used = [
                    "cpu",
                    "cpuacct",
                    "memory",
                    "pids",
                    "freezer",
                    "devices",
                    "blkio",
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
                Kind::V1(ours)
            }
            _ => return None,
        };
        Some(Self { mount_point, kind })
    }

    fn is_writable(&self) -> bool {
        rustix::fs::access(&self.mount_point, rustix::fs::Access::WRITE_OK).is_ok()
    }
}

impl Kind {
    fn has(&self, controller: &str) -> bool {
        match self {
            Self::V1(controllers) => controllers.iter().any(|its| its == controller),
            Self::V2 => true,
        }
    }

    fn has_devices(&self) -> bool {
        matches!(self, Self::V1(_)) && self.has("devices")
    }

    /// Whether containers can do without it.
    fn is_optional(&self) -> bool {
        let is_optional = |controller: &String| matches!(controller.as_str(), "blkio" | "devices");
        matches!(self, Self::V1(controllers) if controllers.iter().all(is_optional))
    }
}

impl Group {
    fn dirs(&self) -> impl Iterator<Item = (&Hierarchy, PathBuf)> {
        self.all
            .0
            .iter()
            .map(|hierarchy| (hierarchy, hierarchy.mount_point.join(&self.path)))
    }

    /// Creates the group and sets its limits.
    pub fn create(&self, limits: &Limits) -> io::Result<()> {
        for (hierarchy, dir) in self.dirs() {
            create_dir(hierarchy, &self.path, &dir)?;
            for (file, value) in files::limits(&hierarchy.kind, limits) {
                files::write(&dir.join(file), &value)?;
            }
        }
        Ok(())
    }

    /// Denies all devices but these, in the form of `devices.allow`. Does nothing without [`Cgroups::has_device_rules`].
    pub fn restrict_devices(&self, allowed: &[String]) -> io::Result<()> {
        for (_, dir) in self.dirs().filter(|(its, _)| its.kind.has_devices()) {
            files::write(&dir.join("devices.deny"), "a")?;
            for rule in allowed {
                // Refused where we may not access the device ourselves.
                let _refused = files::write(&dir.join("devices.allow"), rule);
            }
        }
        Ok(())
    }

    /// Moves the calling process into the group.
    pub fn join(&self) -> io::Result<()> {
        // The kernel takes 0 for the writing process.
        self.add(0)
    }

    /// Moves another process into the group.
    pub fn add(&self, pid: u32) -> io::Result<()> {
        for (hierarchy, dir) in self.dirs() {
            // Containers of older agents have no group for devices, or none for the accounts of block devices.
            if hierarchy.kind.is_optional() && !dir.exists() {
                continue;
            }
            std::fs::write(dir.join("cgroup.procs"), pid.to_string())?;
        }
        Ok(())
    }

    pub fn remove_if_empty(&self) {
        for (_, dir) in self.dirs() {
            // Removed already, or in use.
            let _stays = std::fs::remove_dir(dir);
        }
        self.prune();
    }

    /// Pids of the processes in the group.
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

    /// Kills all processes in the group. Version 1 freezes them first: otherwise a process that forks fast enough could
    /// escape.
    pub fn kill(&self) {
        let dirs: Vec<_> = self.dirs().collect();
        let freezers = dirs
            .iter()
            .filter(|(its, _)| its.kind != Kind::V2 && its.kind.has("freezer"));
        let freezers: Vec<_> = freezers.map(|(_, dir)| dir.join("freezer.state")).collect();
        for (hierarchy, dir) in &dirs {
            if hierarchy.kind == Kind::V2 {
                // Older kernels lack this file; the signals below suffice.
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

    /// Removes the group and its empty ancestors below [`ROOT`]. Succeeds if it does not exist; false if it is still in use.
    pub fn remove(&self) -> bool {
        let gone = |dir: &Path| match std::fs::remove_dir(dir) {
            Ok(()) => true,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        for _ in 0..REMOVE_ATTEMPTS {
            if self.dirs().all(|(_, dir)| gone(&dir)) {
                self.prune();
                return true;
            }
            std::thread::sleep(REMOVE_DELAY);
        }
        false
    }

    fn prune(&self) {
        if !Path::new(&self.path).starts_with(ROOT) {
            return;
        }
        for (hierarchy, dir) in self.dirs() {
            let above = dir
                .ancestors()
                .skip(1)
                .take_while(|above| *above != hierarchy.mount_point);
            // Stops at the first ancestor that is in use.
            let _used = above.map(std::fs::remove_dir).find(Result::is_err);
        }
    }

    /// Whether the kernel has OOM-killed a process in the group.
    pub fn was_oom_killed(&self) -> bool {
        self.dirs().any(|(hierarchy, dir)| {
            let file = match hierarchy.kind {
                Kind::V1(_) => "memory.oom_control",
                Kind::V2 => "memory.events",
            };
            files::field(&dir.join(file), "oom_kill").is_some_and(|kills| kills > 0)
        })
    }

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

    pub fn stats(&self) -> Stats {
        let all = self
            .dirs()
            .map(|(hierarchy, dir)| Stats::read(&hierarchy.kind, &dir));
        all.fold(Stats::default(), Stats::or)
    }

    /// What it has transferred, by block device.
    pub fn devices(&self) -> Devices {
        let mut devices = Devices::new();
        for (hierarchy, dir) in self.dirs() {
            transfers::read(&hierarchy.kind, &dir, &mut devices);
        }
        devices
    }
}

/// Retries: another process may remove an empty ancestor in between.
fn create_dir(hierarchy: &Hierarchy, path: &str, dir: &Path) -> io::Result<()> {
    let mut attempts = 0;
    loop {
        if hierarchy.kind == Kind::V2 {
            files::enable_controllers(&hierarchy.mount_point, path);
        }
        match std::fs::create_dir_all(dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && attempts < 3 => attempts += 1,
            created => return created,
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
    fn only_our_own_groups_are_pruned() {
        let root = tempfile::tempdir().unwrap();
        let all = Cgroups(vec![Hierarchy {
            mount_point: root.path().to_owned(),
            kind: Kind::V1(vec!["cpu".to_owned()]),
        }]);
        let check = |path: &str, left: &[&str], gone: &str| {
            let group = all.group(path);
            group.create(&Limits::default()).unwrap();
            assert!(group.remove());
            for left in left {
                assert!(root.path().join(left).exists(), "{left}");
            }
            assert!(!root.path().join(gone).exists(), "{gone}");
        };
        // Empty groups of a kubelet are its own.
        let kubelets = ["kubepods/burstable/podx", "kubepods/burstable"];
        check(
            "/kubepods/burstable/podx/c",
            &kubelets,
            "kubepods/burstable/podx/c",
        );
        check("kennel/kubepods/burstable/podx/c", &kubelets, "kennel");
    }

    #[test]
    fn devices_are_denied_before_some_are_allowed() {
        let root = tempfile::tempdir().unwrap();
        let hierarchy = |name: &str| Hierarchy {
            mount_point: root.path().join(name),
            kind: Kind::V1(vec![name.to_owned()]),
        };
        let group = Cgroups(vec![hierarchy("devices"), hierarchy("cpu")]).group("kennel/c");
        for (_, dir) in group.dirs() {
            std::fs::create_dir_all(&dir).unwrap();
            for file in ["devices.deny", "devices.allow"] {
                std::fs::write(dir.join(file), "").unwrap();
            }
        }
        group.restrict_devices(&["c 1:3 rwm".to_owned()]).unwrap();
        let read = |file: &str| std::fs::read_to_string(root.path().join(file)).unwrap();
        assert_eq!(read("devices/kennel/c/devices.deny"), "a");
        assert_eq!(read("devices/kennel/c/devices.allow"), "c 1:3 rwm");
        assert_eq!(read("cpu/kennel/c/devices.deny"), "");
    }

    #[test]
    fn containers_can_do_without_device_rules_and_accounts_of_block_devices() {
        let is_optional = |names: &[&str]| {
            let names = names.iter().map(|&name| name.to_owned());
            Kind::V1(names.collect()).is_optional()
        };
        assert!(is_optional(&["blkio"]) && is_optional(&["devices"]));
        assert!(is_optional(&["blkio", "devices"]));
        assert!(!is_optional(&["memory"]) && !is_optional(&["cpu", "blkio"]));
        assert!(!Kind::V2.is_optional());
    }

    #[test]
    fn hierarchies_are_parsed_from_mountinfo() {
        let check = |line: &str, expected: Option<(&str, Kind)>| {
            let expected = expected.map(|(mount_point, kind)| Hierarchy {
                mount_point: mount_point.into(),
                kind,
            });
            assert_eq!(Hierarchy::parse(line), expected, "{line}");
        };
        let v1 = |names: &[&str]| Kind::V1(names.iter().map(|&name| name.to_owned()).collect());
        check(
            "33 24 0:28 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct",
            Some(("/sys/fs/cgroup/cpu,cpuacct", v1(&["cpu", "cpuacct"]))),
        );
        check(
            "34 24 0:29 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd",
            Some(("/sys/fs/cgroup/systemd", v1(&["name=systemd"]))),
        );
        check(
            "35 24 0:30 / /sys/fs/cgroup/devices rw - cgroup cgroup rw,devices",
            Some(("/sys/fs/cgroup/devices", v1(&["devices"]))),
        );
        check(
            "36 24 0:31 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio",
            Some(("/sys/fs/cgroup/blkio", v1(&["blkio"]))),
        );
        check(
            "37 24 0:32 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset",
            None,
        );
        check(
            "24 23 0:22 / /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate",
            Some(("/sys/fs/cgroup", Kind::V2)),
        );
        check("22 1 8:1 / / rw - ext4 /dev/vda rw", None);
    }
}
