//! `/metrics/cadvisor`: the metrics of cAdvisor that dashboards use, as far as cgroups and `/proc` tell them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use kennel_client::metrics::{Metric, Observed, Page};
use kennel_core::procfs::{self, Interface};
use kennel_shim::cgroup::{Cgroups, Stats};

use super::resource::{seconds, started_seconds};
use super::{ContainerUsage, PodUsage, Sample, pods};
use crate::agent::Machine;
use crate::pods::CachedPod;

kennel_core::metrics! {
    pub METRICS;
    Counter PERIODS = "container_cpu_cfs_periods_total" ["container" "id" "image" "name" "namespace" "pod"]
        "Number of elapsed enforcement period intervals.";
    Counter THROTTLED = "container_cpu_cfs_throttled_periods_total" ["container" "id" "image" "name" "namespace" "pod"]
        "Number of throttled period intervals.";
    Counter THROTTLED_TIME = "container_cpu_cfs_throttled_seconds_total" ["container" "id" "image" "name" "namespace" "pod"]
        "Total time duration the container has been throttled.";
    Counter CPU = "container_cpu_usage_seconds_total" ["container" "cpu" "id" "image" "name" "namespace" "pod"]
        "Cumulative cpu time consumed in seconds.";
    Gauge CACHE = "container_memory_cache" ["container" "id" "image" "name" "namespace" "pod"]
        "Number of bytes of page cache memory.";
    Gauge RSS = "container_memory_rss" ["container" "id" "image" "name" "namespace" "pod"]
        "Size of RSS in bytes.";
    Gauge MEMORY = "container_memory_usage_bytes" ["container" "id" "image" "name" "namespace" "pod"]
        "Current memory usage in bytes, including all memory regardless of when it was accessed";
    Gauge WORKING_SET = "container_memory_working_set_bytes" ["container" "id" "image" "name" "namespace" "pod"]
        "Current working set in bytes.";
    Counter RECEIVED = "container_network_receive_bytes_total" ["container" "id" "image" "interface" "name" "namespace" "pod"]
        "Cumulative count of bytes received. Of pods with a network of their own.";
    Counter TRANSMITTED = "container_network_transmit_bytes_total" ["container" "id" "image" "interface" "name" "namespace" "pod"]
        "Cumulative count of bytes transmitted. Of pods with a network of their own.";
    Gauge CPU_PERIOD = "container_spec_cpu_period" ["container" "id" "image" "name" "namespace" "pod"]
        "CPU period of the container, in microseconds.";
    Gauge CPU_QUOTA = "container_spec_cpu_quota" ["container" "id" "image" "name" "namespace" "pod"]
        "CPU quota of the container, in microseconds. Containers without one have none.";
    Gauge MEMORY_LIMIT = "container_spec_memory_limit_bytes" ["container" "id" "image" "name" "namespace" "pod"]
        "Memory limit for the container; 0 without one.";
    Gauge STARTED = "container_start_time_seconds" ["container" "id" "image" "name" "namespace" "pod"]
        "Start time of the container since unix epoch in seconds.";
    Gauge CORES = "machine_cpu_cores" ["boot_id" "machine_id" "system_uuid"]
        "Number of logical CPU cores.";
    Gauge MACHINE_MEMORY = "machine_memory_bytes" ["boot_id" "machine_id" "system_uuid"]
        "Amount of memory installed on the machine.";
}

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
    /// Empty if it has the machine's network.
    interfaces: Vec<Interface>,
}

impl<'a> Container<'a> {
    fn read(pod: &'a PodUsage<'a>, own: &'a ContainerUsage<'a>, groups: &Cgroups) -> Self {
        let path = own.usage.cgroup.trim_matches('/');
        let (mut id, mut stats, mut interfaces) = (String::new(), Stats::default(), Vec::new());
        if !path.is_empty() {
            id = format!("/{path}");
            let group = groups.group(path);
            stats = group.stats();
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
            interfaces,
        }
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
        self.rows(page, &CACHE, |one| one.stats.cache);
        self.rows(page, &RSS, |one| one.stats.rss);
        self.rows(page, &MEMORY, |one| one.stats.memory_usage);
        self.show_working_set(page);
        self.show_network(page, &RECEIVED, |interface| interface.received);
        self.show_network(page, &TRANSMITTED, |interface| interface.transmitted);
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
        page.rows(&CPU, machine.into_iter().chain(containers));
    }

    fn show_working_set(&self, page: &mut Page) {
        let machine = self.sample.memory.map(|memory| {
            let working_set = memory.capacity.saturating_sub(memory.available);
            (labelled(MACHINE), working_set)
        });
        let containers = self.containers.iter();
        let containers = containers.map(|one| (labelled(one.labels()), one.own.usage.memory));
        page.rows(&WORKING_SET, machine.into_iter().chain(containers));
    }

    /// The containers of a pod share its network: the first tells.
    fn show_network(&self, page: &mut Page, metric: &Metric, of: impl Fn(&Interface) -> u64) {
        let mut rows = BTreeMap::new();
        for one in &self.containers {
            let pod = &one.pod.cached.pod.id;
            let id = Path::new(&one.id).parent().unwrap_or(Path::new("/"));
            let id = id.to_string_lossy();
            for interface in &one.interfaces {
                let labels = labelled([
                    ("container", ""),
                    ("id", &*id),
                    ("image", ""),
                    ("interface", interface.name.as_str()),
                    ("name", ""),
                    ("namespace", pod.namespace.as_str()),
                    ("pod", pod.name.as_str()),
                ]);
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
