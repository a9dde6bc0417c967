//! `/metrics/cadvisor`: the metrics of cAdvisor that dashboards use, as far as cgroups and `/proc` tell them.
//!
//! Beside its containers, a pod has rows of its own, with an empty `container`: the sums of its containers. cAdvisor also
//! counts the sandbox there.

mod container;
mod machine;
mod metrics;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use kennel_client::metrics::{Metric, Observed, Page};
use kennel_core::procfs::{Interface, Traffic};
use kennel_shim::cgroup::{Cgroups, Transfers};

use self::container::Container;
use self::machine::FileSystem;
pub use self::metrics::METRICS;
use self::metrics::{
    CACHE, CORES, CPU, CPU_PERIOD, CPU_QUOTA, DISK_LIMIT, DISK_USAGE, LAST_SEEN, MACHINE_MEMORY,
    MEMORY, MEMORY_LIMIT, OOM_EVENTS, PERIODS, PROCESSES, READ_BYTES, READS, RECEIVED,
    RECEIVED_DROPPED, RECEIVED_ERRORS, RECEIVED_PACKETS, RSS, STARTED, SWAP, THREADS, THROTTLED,
    THROTTLED_TIME, TRANSMITTED, TRANSMITTED_DROPPED, TRANSMITTED_ERRORS, TRANSMITTED_PACKETS,
    WORKING_SET, WRITES, WRITTEN_BYTES,
};
use super::resource::{seconds, started_seconds};
use super::{Sample, pods};
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
        file_system: FileSystem::of(data),
        interfaces: machine::interfaces(),
        sample,
        containers: containers.collect(),
    };
    Page::of([&detailed as &dyn Observed])
}

struct Detailed<'a> {
    machine: Machine,
    /// The one that pods write to.
    file_system: Option<FileSystem>,
    /// Of the machine.
    interfaces: Vec<Interface>,
    sample: &'a Sample,
    containers: Vec<Container<'a>>,
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
        self.show_file_system(page);
        self.show_devices(page, &READ_BYTES, |device| device.read_bytes);
        self.show_devices(page, &READS, |device| device.reads);
        self.show_devices(page, &WRITTEN_BYTES, |device| device.written_bytes);
        self.show_devices(page, &WRITES, |device| device.writes);
        self.show_last_seen(page);
        self.rows_of_pods(page, &CACHE, |one| one.stats.cache);
        self.rows_of_pods(page, &RSS, |one| one.stats.rss);
        self.rows_of_pods(page, &SWAP, |one| one.stats.swap);
        self.rows_of_pods(page, &MEMORY, |one| one.stats.memory_usage);
        self.show_working_set(page);
        self.show_traffic(page);
        self.rows_of_pods(page, &OOM_EVENTS, |one| one.stats.oom_kills);
        self.rows_of_pods(page, &PROCESSES, |one| one.processes);
        self.rows(page, &CPU_PERIOD, |one| one.stats.cpu_period);
        self.rows(page, &CPU_QUOTA, |one| one.stats.cpu_quota);
        self.rows(page, &MEMORY_LIMIT, |one| one.stats.memory_limit);
        self.rows(page, &STARTED, |one| started_seconds(one.own));
        self.rows_of_pods(page, &THREADS, |one| one.stats.threads);
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
            let labels = labelled(machine::LABELS.into_iter().chain([TOTAL]));
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
            (labelled(machine::LABELS), working_set)
        });
        let containers = self.containers.iter();
        let containers = containers.map(|one| (labelled(one.labels()), one.working_set()));
        let pods = self.sums(&|one| Some(one.working_set()), &[]);
        let rows = machine.into_iter().chain(containers).chain(pods);
        page.rows(&WORKING_SET, rows);
    }

    /// Containers share the machine's file systems. What they have written themselves is in `/stats/summary`.
    fn show_file_system(&self, page: &mut Page) {
        let Some(FileSystem { device, used, size }) = &self.file_system else {
            return;
        };
        let device = ("device", device.as_str());
        let labels = labelled(machine::LABELS.into_iter().chain([device]));
        page.rows(&DISK_LIMIT, [(&labels, size)]);
        page.rows(&DISK_USAGE, [(&labels, used)]);
    }

    fn show_last_seen(&self, page: &mut Page) {
        let time = self.sample.time.as_secs();
        let containers = self.containers.iter().map(|one| labelled(one.labels()));
        let seen = std::iter::once(labelled(machine::LABELS)).chain(containers);
        page.rows(&LAST_SEEN, seen.map(|labels| (labels, time)));
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
        for interface in &self.interfaces {
            let interfaces = ("interface", interface.name.as_str());
            let labels = labelled(machine::LABELS.into_iter().chain([interfaces]));
            rows.insert(labels, of(interface));
        }
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
