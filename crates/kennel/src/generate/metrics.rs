//! The reference page of metrics, from the tables of all metrics.

use std::fmt::Write as _;

use kennel_core::metric::Metric;
use kennel_standalone::{request_counts, supervisor};

use super::markdown::cell;

const HEAD: &str = "# Metrics

Served at `/metrics`, and by agents at `/metrics/resource` and `/metrics/cadvisor`, too, in the Prometheus text format:

| Where | Who may read it |
|---|---|
| `kennel server` and `kennel up`: the address of the API | users with the right to `get` the path `/metrics`, such as administrators |
| `kennel controller --metrics-listen ADDRESS` | everyone who can connect to the address; plain HTTP |
| a node's agent: port 10250 | users with the right to `get` `nodes/metrics`; also through the API at `/api/v1/nodes/NAME/proxy/metrics` |

Metrics without the prefix `kennel_` are those of upstream Kubernetes, with the same meaning. Histograms are in seconds.
Simulated nodes and `kennel dns` have no metrics.
";

pub(super) fn page() -> String {
    let mut out = HEAD.to_owned();
    let sections: [(&str, &[&[&'static Metric]]); 9] = [
        ("The server", &[kennel_server::metrics::METRICS]),
        (
            "The components of `kennel up`",
            &[supervisor::METRICS, request_counts::METRICS],
        ),
        (
            "Every controller (`kennel up` and `kennel controller`)",
            &[kennel_control::frame::METRICS],
        ),
        (
            "The DaemonSet controller (`kennel up` and `kennel controller`)",
            &[
                kennel_control::daemonset::METRICS,
                kennel_control::daemonset::ROLLOUT_METRICS,
            ],
        ),
        (
            "Leader election and credentials (`kennel controller`)",
            &[
                kennel_client::lease::METRICS,
                kennel_agent::kubeconfig_certificate::METRICS,
            ],
        ),
        (
            "The scheduler (`kennel up`)",
            &[kennel_control::scheduler::METRICS],
        ),
        (
            "A node's agent",
            &[
                kennel_node::kubelet_api::METRICS,
                kennel_node::runtime::METRICS,
                kennel_node::pressure::METRICS,
                kennel_agent::service_proxy::METRICS,
                kennel_node::manifests::METRICS,
                kennel_node::agent::identity::expiration::METRICS,
            ],
        ),
        (
            "A node's agent, at `/metrics/resource`",
            &[kennel_node::kubelet_api::RESOURCE_METRICS],
        ),
        (
            "A node's agent, at `/metrics/cadvisor`",
            &[kennel_node::kubelet_api::CADVISOR_METRICS],
        ),
    ];
    for (title, tables) in sections {
        // Writing to a String cannot fail.
        let _ = write!(
            out,
            "\n## {title}\n\n| Name | Type | Labels | |\n|---|---|---|---|\n"
        );
        for metric in tables.iter().copied().flatten() {
            write_row(&mut out, metric);
        }
    }
    out
}

fn write_row(out: &mut String, metric: &Metric) {
    let labels = metric.labels.iter().map(|label| format!("`{label}`"));
    let labels = labels.collect::<Vec<_>>().join(", ");
    let (name, kind, help) = (metric.name, metric.kind.as_str(), cell(metric.help));
    let _ = writeln!(out, "| `{name}` | {kind} | {labels} | {help} |");
}
