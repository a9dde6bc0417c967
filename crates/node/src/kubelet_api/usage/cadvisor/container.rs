//! The metrics of one container: its labels, and the usage of its cgroup and its network.

use std::fs;
use std::path::Path;

use kennel_core::procfs::{self, Interface};
use kennel_shim::cgroup::{Cgroups, Devices, Stats};

use super::machine::device_file;
use crate::kubelet_api::usage::{ContainerUsage, PodUsage};

pub(super) struct Container<'a> {
    pub(super) pod: &'a PodUsage<'a>,
    pub(super) own: &'a ContainerUsage<'a>,
    /// Its cgroup from the root, as cAdvisor names containers; empty if unknown.
    pub(super) id: String,
    pub(super) stats: Stats,
    /// How many it has; none if they cannot be told: a running container has some.
    pub(super) processes: Option<u64>,
    /// By the names of the devices' files.
    pub(super) devices: Devices,
    /// Empty if it has the machine's network.
    pub(super) interfaces: Vec<Interface>,
}

impl<'a> Container<'a> {
    pub(super) fn read(
        pod: &'a PodUsage<'a>,
        own: &'a ContainerUsage<'a>,
        groups: &Cgroups,
    ) -> Self {
        let path = own.usage.cgroup.trim_matches('/');
        let (mut id, mut stats, mut interfaces) = (String::new(), Stats::default(), Vec::new());
        let (mut devices, mut processes) = (Devices::new(), None);
        if !path.is_empty() {
            id = format!("/{path}");
            let group = groups.group(path);
            stats = group.stats();
            let numbered = group.devices().into_iter();
            devices = numbered.map(|(at, of)| (device_file(&at), of)).collect();
            let pids = group.processes();
            processes = u64::try_from(pids.len()).ok().filter(|count| *count > 0);
            interfaces = pids.first().copied().map_or_else(Vec::new, network);
        }
        Self {
            pod,
            own,
            id,
            stats,
            processes,
            devices,
            interfaces,
        }
    }

    /// Of the same read as the other memory figures; the runtime's, which is older, where its cgroup is unknown.
    pub(super) fn working_set(&self) -> u64 {
        self.stats.working_set().unwrap_or(self.own.usage.memory)
    }

    /// The cgroup around it.
    pub(super) fn pod_id(&self) -> String {
        let parent = Path::new(&self.id).parent();
        let parent = parent.filter(|parent| !parent.as_os_str().is_empty());
        parent
            .unwrap_or(Path::new("/"))
            .to_string_lossy()
            .into_owned()
    }

    /// The labels of its pod.
    pub(super) fn pod_labels<'b>(&'b self, id: &'b str) -> [(&'static str, &'b str); 6] {
        let pod = &self.pod.cached.pod.id;
        [
            ("container", ""),
            ("id", id),
            ("image", ""),
            ("name", ""),
            ("namespace", pod.namespace.as_str()),
            ("pod", pod.name.as_str()),
        ]
    }

    pub(super) fn labels(&self) -> [(&'static str, &str); 6] {
        let (usage, pod) = (self.own.usage, &self.pod.cached.pod.id);
        [
            ("container", usage.container.as_str()),
            ("id", self.id.as_str()),
            ("image", self.own.run.map_or("", |run| run.image.as_str())),
            ("name", usage.id.as_str()),
            ("namespace", pod.namespace.as_str()),
            ("pod", pod.name.as_str()),
        ]
    }
}

/// The interfaces of a process, if its network is not the machine's.
fn network(pid: i32) -> Vec<Interface> {
    let namespace = |process: &str| fs::read_link(format!("/proc/{process}/ns/net")).ok();
    let its = namespace(&pid.to_string());
    if its.is_none() || its == namespace("self") {
        return Vec::new();
    }
    let table = fs::read_to_string(format!("/proc/{pid}/net/dev"));
    procfs::interfaces(&table.unwrap_or_default()).collect()
}
