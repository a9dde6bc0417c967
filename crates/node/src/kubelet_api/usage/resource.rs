//! `/metrics/resource`: upstream's metrics of CPU time and working sets.

use std::sync::Arc;
use std::time::Duration;

use kennel_client::metrics::{Metric, Observed, Page};

use super::{ContainerUsage, PodUsage, Sample, pods};
use crate::pods::CachedPod;

kennel_core::metrics! {
    pub METRICS;
    Counter CONTAINER_CPU = "container_cpu_usage_seconds_total" ["container" "pod" "namespace"]
        "Cumulative cpu time consumed by the container in core-seconds";
    Gauge CONTAINER_MEMORY = "container_memory_working_set_bytes" ["container" "pod" "namespace"]
        "Current working set of the container in bytes";
    Gauge CONTAINER_STARTED = "container_start_time_seconds" ["container" "pod" "namespace"]
        "Start time of the container since unix epoch in seconds";
    Counter NODE_CPU = "node_cpu_usage_seconds_total" []
        "Cumulative cpu time consumed by the node in core-seconds";
    Gauge NODE_MEMORY = "node_memory_working_set_bytes" []
        "Current working set of the node in bytes";
    Counter POD_CPU = "pod_cpu_usage_seconds_total" ["pod" "namespace"]
        "Cumulative cpu time consumed by the pod in core-seconds";
    Gauge POD_MEMORY = "pod_memory_working_set_bytes" ["pod" "namespace"]
        "Current working set of the pod in bytes";
    Gauge ERROR = "resource_scrape_error" []
        "1 if there was an error while getting container metrics, 0 otherwise";
    Gauge OLD_ERROR = "scrape_error" []
        "(Deprecated since 1.29.0) 1 if there was an error while getting container metrics, 0 otherwise";
}

/// The text of `/metrics/resource`. Without a sample, only that it could not be made.
pub(in crate::kubelet_api) fn page(sample: Option<&Sample>, cached: &[Arc<CachedPod>]) -> String {
    Page::of([&Resources { sample, cached } as &dyn Observed])
}

struct Resources<'a> {
    sample: Option<&'a Sample>,
    cached: &'a [Arc<CachedPod>],
}

impl Observed for Resources<'_> {
    fn show(&self, page: &mut Page) {
        if let Some(sample) = self.sample {
            let pods = pods(self.cached, sample);
            show_containers(page, sample, &pods);
            show_node(page, sample);
            show_pods(page, sample, &pods);
        }
        let failed = u8::from(self.sample.is_none());
        page.number(&ERROR, failed);
        page.number(&OLD_ERROR, failed);
    }
}

/// CPU time, as metrics have it.
pub(super) fn seconds(nanos: u64) -> f64 {
    Duration::from_nanos(nanos).as_secs_f64()
}

/// As upstream, values have the time at which they were measured.
fn timed(sample: &Sample, value: impl std::fmt::Display) -> String {
    format!("{value} {}", sample.time.as_millis())
}

fn show_containers(page: &mut Page, sample: &Sample, pods: &[PodUsage<'_>]) {
    let mut rows = |metric: &Metric, value: &dyn Fn(&ContainerUsage<'_>) -> Option<String>| {
        let containers = pods.iter().flat_map(|pod| {
            let id = &pod.cached.pod.id;
            let containers = pod.containers.iter();
            containers.filter_map(move |one| {
                let (pod, namespace) = (&id.name, &id.namespace);
                let container = &one.usage.container;
                let labels = format!("container={container:?},pod={pod:?},namespace={namespace:?}");
                Some((labels, value(one)?))
            })
        });
        page.rows(metric, containers);
    };
    rows(&CONTAINER_CPU, &|one| {
        Some(timed(sample, seconds(one.usage.cpu)))
    });
    rows(&CONTAINER_MEMORY, &|one| {
        Some(timed(sample, one.usage.memory))
    });
    rows(&CONTAINER_STARTED, &|one| {
        Some(started_seconds(one)?.to_string())
    });
}

/// When a container was started, in seconds since 1970.
pub(super) fn started_seconds(container: &ContainerUsage<'_>) -> Option<f64> {
    let millis = u64::try_from(container.started()?.as_millis()).ok()?;
    Some(Duration::from_millis(millis).as_secs_f64())
}

fn show_node(page: &mut Page, sample: &Sample) {
    if let Some(cpu) = sample.cpu {
        page.number(&NODE_CPU, timed(sample, seconds(cpu)));
    }
    if let Some(memory) = sample.memory {
        let working_set = memory.capacity.saturating_sub(memory.available);
        page.number(&NODE_MEMORY, timed(sample, working_set));
    }
}

fn show_pods(page: &mut Page, sample: &Sample, pods: &[PodUsage<'_>]) {
    let measured = || pods.iter().filter(|pod| !pod.containers.is_empty());
    let labels = |pod: &PodUsage<'_>| {
        let id = &pod.cached.pod.id;
        format!("pod={:?},namespace={:?}", id.name, id.namespace)
    };
    let rows = measured().map(|pod| {
        let cpu = pod.containers.iter().map(|one| one.usage.cpu).sum();
        (labels(pod), timed(sample, seconds(cpu)))
    });
    page.rows(&POD_CPU, rows);
    let rows = measured().map(|pod| {
        let memory: u64 = pod.containers.iter().map(|one| one.usage.memory).sum();
        (labels(pod), timed(sample, memory))
    });
    page.rows(&POD_MEMORY, rows);
}
