//! The page of metrics, from the tables of those who count.

use std::fmt::Write as _;

use kennel_core::metric::Metric;
use kennel_standalone::{request_counts, supervisor};

use super::markdown::cell;

const HEAD: &str = "# Metrics

Prometheus' text format, at `/metrics`:

| Where | Who may read it |
|---|---|
| `kennel server` and `kennel up`: the API's own address | who has the right to `get` the path `/metrics`, as administrators have |
| `kennel controller --metrics-listen ADDRESS` | everyone who reaches the address; plain HTTP |
| a node's agent: port 10250 | who has the right to `get` `nodes/metrics`; or through the API at `/api/v1/nodes/NAME/proxy/metrics` |

Names that do not begin with `kennel_` are upstream's and mean the same. Histograms are in seconds. Simulated nodes
and `kennel dns` have no numbers of their own.
";

/// The page.
pub(super) fn page() -> String {
    let mut out = HEAD.to_owned();
    let sections: [(&str, &[&[&'static Metric]]); 6] = [
        ("The server", &[kennel_server::metrics::METRICS]),
        (
            "The parts of `kennel up`",
            &[supervisor::METRICS, request_counts::METRICS],
        ),
        (
            "The DaemonSet controller (`kennel up` and `kennel controller`)",
            &[kennel_control::daemonset::METRICS],
        ),
        (
            "Leader election (`kennel controller --leader-elect`)",
            &[kennel_client::lease::METRICS],
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
                kennel_node::manifests::METRICS,
            ],
        ),
    ];
    for (title, tables) in sections {
        // Writing to a String cannot fail.
        let _ = write!(
            out,
            "\n## {title}\n\n| Name | Type | Labels | |\n|---|---|---|---|\n"
        );
        for metric in tables.iter().copied().flatten() {
            put(&mut out, metric);
        }
    }
    out
}

fn put(out: &mut String, metric: &Metric) {
    let labels = metric.labels.iter().map(|label| format!("`{label}`"));
    let labels = labels.collect::<Vec<_>>().join(", ");
    let (name, kind, help) = (metric.name, metric.kind.word(), cell(metric.help));
    let _ = writeln!(out, "| `{name}` | {kind} | {labels} | {help} |");
}
