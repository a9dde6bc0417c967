//! `/metrics/cadvisor`: the metrics of cAdvisor that dashboards use, as far as cgroups and `/proc` tell them.
//!
//! Beside its containers, a pod has rows of its own, with an empty `container`: the sums of its containers. cAdvisor also
//! counts the sandbox there.

mod metrics;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use kennel_client::metrics::{Metric, Observed, Page};
use kennel_core::procfs::{self, Interface, Traffic};
use kennel_shim::cgroup::{Cgroups, Devices, Stats, Transfers};

pub use self::metrics::METRICS;
use self::metrics::{
    CACHE, CORES, CPU, CPU_PERIOD, CPU_QUOTA, MACHINE_MEMORY, MEMORY, MEMORY_LIMIT, PERIODS,
    READ_BYTES, READS, RECEIVED, RECEIVED_DROPPED, RECEIVED_ERRORS, RECEIVED_PACKETS, RSS, STARTED,
    SWAP, THROTTLED, THROTTLED_TIME, TRANSMITTED, TRANSMITTED_DROPPED, TRANSMITTED_ERRORS,
    TRANSMITTED_PACKETS, WORKING_SET, WRITES, WRITTEN_BYTES,
};
use super::resource::{seconds, started_seconds};
use super::{ContainerUsage, PodUsage, Sample, pods};
use crate::agent::Machine;
use crate::pods::CachedPod;

/// The text of `/metrics/cadvisor`. Reads files, so it may wait for a moment.
pub(in crate::kubelet_api) fn page(
    sample: &Sample,
    cached: &[Arc<CachedPod>],
    data: &Path,
) -> String {
    let groups = Cgroups::find();
    let pods = pods(cached, sample);
    let containers = pods.iter().flat_map(|pod| {
        let groups = &groups;
        let containers = pod.containers.iter();
        containers.map(move |one| Container::read(pod, one, groups))
    });
    let detailed = Detailed {
        machine: Machine::read(data),
        sample,
        containers: containers.collect(),
    };
    Page::of([&detailed as &dyn Observed])
}

struct Detailed<'a> {
    machine: Machine,
    sample: &'a Sample,
    containers: Vec<Container<'a>>,
}

struct Container<'a> {
    pod: &'a PodUsage<'a>,
    own: &'a ContainerUsage<'a>,
    /// Its cgroup from the root, as cAdvisor names containers; empty if unknown.
    id: String,
    stats: Stats,
    /// By the names of the devices' files.
    devices: Devices,
    /// Empty if it has the machine's network.
    interfaces: Vec<Interface>,
}

impl<'a> Container<'a> {
    fn read(pod: &'a PodUsage<'a>, own: &'a ContainerUsage<'a>, groups: &Cgroups) -> Self {
        let path = own.usage.cgroup.trim_matches('/');
        let (mut id, mut stats, mut interfaces) = (String::new(), Stats::default(), Vec::new());
        let mut devices = Devices::new();
        if !path.is_empty() {
            id = format!("/{path}");
            let group = groups.group(path);
            stats = group.stats();
            let numbered = group.devices().into_iter();
            devices = numbered.map(|(at, of)| (device_file(&at), of)).collect();
            interfaces = group
                .processes()
                .first()
                .copied()
                .map_or_else(Vec::new, network);
        }
        Self {
            pod,
            own,
            id,
            stats,
            devices,
            interfaces,
        }
    }

    /// Of the same read as the other memory figures; the runtime's, which is older, where its cgroup is unknown.
    fn working_set(&self) -> u64 {
        self.stats.working_set().unwrap_or(self.own.usage.memory)
    }

    /// The cgroup around it.
    fn pod_id(&self) -> String {
        let parent = Path::new(&self.id).parent();
        let parent = parent.filter(|parent| !parent.as_os_str().is_empty());
        parent
            .unwrap_or(Path::new("/"))
            .to_string_lossy()
            .into_owned()
    }

    /// The labels of its pod.
    fn pod_labels<'b>(&'b self, id: &'b str) -> [(&'static str, &'b str); 6] {
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

    fn labels(&self) -> [(&'static str, &str); 6] {
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

/// The file of a block device, such as `/dev/sda` for `8:0`; its number if the kernel does not tell.
fn device_file(number: &str) -> String {
    let about = fs::read_to_string(format!("/sys/dev/block/{number}/uevent"));
    let about = about.unwrap_or_default();
    let name = about.lines().find_map(|line| line.strip_prefix("DEVNAME="));
    name.map_or_else(|| number.to_owned(), |name| format!("/dev/{name}"))
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

/// Labels in Prometheus format, in the order of their names.
fn labelled<'a>(labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let sorted: BTreeMap<&str, &str> = labels.into_iter().collect();
    let written: Vec<String> = sorted
        .into_iter()
        .map(|(name, value)| format!("{name}={value:?}"))
        .collect();
    written.join(",")
}

/// The machine as a whole, which cAdvisor calls the container `/`.
const MACHINE: [(&str, &str); 6] = [
    ("container", ""),
    ("id", "/"),
    ("image", ""),
    ("name", ""),
    ("namespace", ""),
    ("pod", ""),
];

impl Observed for Detailed<'_> {
    fn show(&self, page: &mut Page) {
        let limited = |one: &Container<'_>| one.stats.cpu_quota.is_some();
        let throttled = |one: &Container<'_>, value: Option<u64>| value.filter(|_| limited(one));
        self.rows(page, &PERIODS, |one| throttled(one, one.stats.periods));
        self.rows(page, &THROTTLED, |one| {
            throttled(one, one.stats.throttled_periods)
        });
        self.rows(page, &THROTTLED_TIME, |one| {
            throttled(one, one.stats.throttled_time).map(seconds)
        });
        self.show_cpu(page);
        self.show_devices(page, &READ_BYTES, |device| device.read_bytes);
        self.show_devices(page, &READS, |device| device.reads);
        self.show_devices(page, &WRITTEN_BYTES, |device| device.written_bytes);
        self.show_devices(page, &WRITES, |device| device.writes);
        self.rows_of_pods(page, &CACHE, |one| one.stats.cache);
        self.rows_of_pods(page, &RSS, |one| one.stats.rss);
        self.rows_of_pods(page, &SWAP, |one| one.stats.swap);
        self.rows_of_pods(page, &MEMORY, |one| one.stats.memory_usage);
        self.show_working_set(page);
        self.show_traffic(page);
        self.rows(page, &CPU_PERIOD, |one| one.stats.cpu_period);
        self.rows(page, &CPU_QUOTA, |one| one.stats.cpu_quota);
        self.rows(page, &MEMORY_LIMIT, |one| one.stats.memory_limit);
        self.rows(page, &STARTED, |one| started_seconds(one.own));
        self.show_machine(page);
    }
}

impl Detailed<'_> {
    /// Containers without the value are left out.
    fn rows<V: std::fmt::Display>(
        &self,
        page: &mut Page,
        metric: &Metric,
        of: impl Fn(&Container<'_>) -> Option<V>,
    ) {
        let rows = self.containers.iter().filter_map(|one| {
            let value = of(one)?;
            Some((labelled(one.labels()), value))
        });
        page.rows(metric, rows);
    }

    /// The rows of containers, and of pods.
    fn rows_of_pods(
        &self,
        page: &mut Page,
        metric: &Metric,
        of: impl Fn(&Container<'_>) -> Option<u64>,
    ) {
        let containers = self.containers.iter();
        let containers = containers.filter_map(|one| Some((labelled(one.labels()), of(one)?)));
        page.rows(metric, containers.chain(self.sums(&of, &[])));
    }

    /// The sum of a pod's containers, by its labels and `further` ones.
    fn sums(
        &self,
        of: &impl Fn(&Container<'_>) -> Option<u64>,
        further: &[(&str, &str)],
    ) -> BTreeMap<String, u64> {
        let mut sums = BTreeMap::new();
        for one in &self.containers {
            let Some(value) = of(one) else { continue };
            let id = one.pod_id();
            let labels = one.pod_labels(&id).into_iter();
            let labels = labelled(labels.chain(further.iter().copied()));
            *sums.entry(labels).or_default() += value;
        }
        sums
    }

    fn show_cpu(&self, page: &mut Page) {
        const TOTAL: (&str, &str) = ("cpu", "total");
        let machine = self.sample.cpu.map(|cpu| {
            let labels = labelled(MACHINE.into_iter().chain([TOTAL]));
            (labels, seconds(cpu))
        });
        let containers = self.containers.iter().map(|one| {
            let labels = labelled(one.labels().into_iter().chain([TOTAL]));
            (labels, seconds(one.own.usage.cpu))
        });
        let pods = self.sums(&|one| Some(one.own.usage.cpu), &[TOTAL]);
        let pods = pods.into_iter().map(|(labels, cpu)| (labels, seconds(cpu)));
        page.rows(&CPU, machine.into_iter().chain(containers).chain(pods));
    }

    fn show_working_set(&self, page: &mut Page) {
        let machine = self.sample.memory.map(|memory| {
            let working_set = memory.capacity.saturating_sub(memory.available);
            (labelled(MACHINE), working_set)
        });
        let containers = self.containers.iter();
        let containers = containers.map(|one| (labelled(one.labels()), one.working_set()));
        let pods = self.sums(&|one| Some(one.working_set()), &[]);
        let rows = machine.into_iter().chain(containers).chain(pods);
        page.rows(&WORKING_SET, rows);
    }

    fn show_devices(&self, page: &mut Page, metric: &Metric, of: impl Fn(&Transfers) -> u64) {
        let rows = self.containers.iter().flat_map(|one| {
            let devices = one.devices.iter();
            devices.map(|(file, transfers)| {
                let device = ("device", file.as_str());
                let labels = labelled(one.labels().into_iter().chain([device]));
                (labels, of(transfers))
            })
        });
        page.rows(metric, rows);
    }

    fn show_traffic(&self, page: &mut Page) {
        type Direction = fn(&Interface) -> &Traffic;
        type Counter = fn(&Traffic) -> u64;
        let received: Direction = |interface| &interface.received;
        let transmitted: Direction = |interface| &interface.transmitted;
        let rows: [(&Metric, Direction, Counter); 8] = [
            (&RECEIVED, received, |traffic| traffic.bytes),
            (&RECEIVED_ERRORS, received, |traffic| traffic.errors),
            (&RECEIVED_DROPPED, received, |traffic| traffic.dropped),
            (&RECEIVED_PACKETS, received, |traffic| traffic.packets),
            (&TRANSMITTED, transmitted, |traffic| traffic.bytes),
            (&TRANSMITTED_ERRORS, transmitted, |traffic| traffic.errors),
            (&TRANSMITTED_DROPPED, transmitted, |traffic| traffic.dropped),
            (&TRANSMITTED_PACKETS, transmitted, |traffic| traffic.packets),
        ];
        for (metric, direction, of) in rows {
            self.show_network(page, metric, |interface| of(direction(interface)));
        }
    }

    /// The containers of a pod share its network: the first tells.
    fn show_network(&self, page: &mut Page, metric: &Metric, of: impl Fn(&Interface) -> u64) {
        let mut rows = BTreeMap::new();
        for one in &self.containers {
            let id = one.pod_id();
            for interface in &one.interfaces {
                let interfaces = ("interface", interface.name.as_str());
                let labels = labelled(one.pod_labels(&id).into_iter().chain([interfaces]));
                rows.entry(labels).or_insert_with(|| of(interface));
            }
        }
        page.rows(metric, rows);
    }

    fn show_machine(&self, page: &mut Page) {
        let Machine {
            boot_id,
            machine_id,
            system_uuid,
            cpus,
            memory,
            ..
        } = &self.machine;
        let labels = labelled([
            ("boot_id", boot_id.as_str()),
            ("machine_id", machine_id.as_str()),
            ("system_uuid", system_uuid.as_str()),
        ]);
        page.rows(&CORES, [(&labels, cpus)]);
        page.rows(&MACHINE_MEMORY, [(&labels, memory)]);
    }
}
