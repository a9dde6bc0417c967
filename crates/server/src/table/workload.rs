//! The printers of DaemonSets, ControllerRevisions and disruption budgets.

use kennel_types::Timestamp;
use serde_json::{Value, json};

use super::column::{AGE, Column, NAME, integer, text as column, wide};
use super::duration::since;
use super::format::{NONE, labels, members, selector};
use crate::tree::{at, flag, list, map, number, text, time};

pub(super) const DAEMONSET: &[Column] = &[
    NAME,
    integer("Desired", "Nodes that should run the pod."),
    integer(
        "Current",
        "Nodes that run at least one of its pods and should.",
    ),
    integer("Ready", "Nodes whose pod is ready."),
    integer("Up-to-date", "Nodes whose pod has the newest template."),
    integer(
        "Available",
        "Nodes whose pod has been ready for long enough.",
    ),
    column("Node Selector", "The labels a node needs."),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

/// The names of the template's containers.
pub(super) const CONTAINERS: Column = wide("Containers", "The names of its containers.");
/// The images of the template's containers.
pub(super) const IMAGES: Column = wide("Images", "The images of its containers.");
/// The selector of a workload.
pub(super) const SELECTOR: Column = wide("Selector", "The pods it owns.");

pub(super) const CONTROLLER_REVISION: &[Column] = &[
    NAME,
    column("Controller", "The object whose history this belongs to."),
    column("Revision", "Its place in that history."),
    AGE,
];

pub(super) const DISRUPTION_BUDGET: &[Column] = &[
    NAME,
    column("Min Available", "How many pods must stay."),
    column("Max Unavailable", "How many pods may be missing."),
    integer("Allowed Disruptions", "How many pods may be evicted now."),
    AGE,
];

pub(super) fn daemonset(ds: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        json!(text(ds, "metadata.name")),
        json!(number(ds, "status.desiredNumberScheduled")),
        json!(number(ds, "status.currentNumberScheduled")),
        json!(number(ds, "status.numberReady")),
        json!(number(ds, "status.updatedNumberScheduled")),
        json!(number(ds, "status.numberAvailable")),
        json!(labels(map(ds, "spec.template.spec.nodeSelector"))),
        json!(since(time(ds, "metadata.creationTimestamp"), now)),
        json!(members(ds, "spec.template.spec.containers", "name")),
        json!(members(ds, "spec.template.spec.containers", "image")),
        json!(selector(ds, "spec.selector")),
    ]
}

pub(super) fn controller_revision(revision: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        json!(text(revision, "metadata.name")),
        json!(controller(revision)),
        json!(number(revision, "revision")),
        json!(since(time(revision, "metadata.creationTimestamp"), now)),
    ]
}

pub(super) fn disruption_budget(budget: &Value, now: Timestamp) -> Vec<Value> {
    let limit = |path| match at(budget, path) {
        Value::Null => json!("N/A"),
        Value::String(percent) => json!(percent),
        count => json!(count.to_string()),
    };
    vec![
        json!(text(budget, "metadata.name")),
        limit("spec.minAvailable"),
        limit("spec.maxUnavailable"),
        json!(number(budget, "status.disruptionsAllowed")),
        json!(since(time(budget, "metadata.creationTimestamp"), now)),
    ]
}

/// The controlling owner as `kind.group/name`.
fn controller(object: &Value) -> String {
    let owners = list(object, "metadata.ownerReferences");
    let Some(owner) = owners.iter().find(|o| flag(o, "controller")) else {
        return NONE.to_owned();
    };
    let name = text(owner, "name");
    let kind = text(owner, "kind").to_lowercase();
    match text(owner, "apiVersion").split_once('/') {
        Some((group, _)) => format!("{kind}.{}/{name}", group.to_lowercase()),
        None => format!("{kind}/{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use serde_json::json;

    #[test]
    fn s10_1_daemonsets() {
        check(
            "daemonsets",
            json!({"metadata": {"name": "d"}}),
            json!(["d", 0, 0, 0, 0, 0, "<none>", "<unknown>", "", "", "<none>"]),
        );
        check(
            "daemonsets",
            json!({
                "metadata": {"name": "logs", "creationTimestamp": "2026-01-01T00:58:30Z"},
                "spec": {
                    "selector": {"matchLabels": {"app": "logs"}},
                    "template": {"spec": {
                        "nodeSelector": {"disk": "ssd", "arch": "arm64"},
                        "initContainers": [{"name": "init", "image": "busybox"}],
                        "containers": [{"name": "a", "image": "img:1"}, {"name": "b", "image": "img:2"}],
                    }},
                },
                "status": {"desiredNumberScheduled": 5, "currentNumberScheduled": 4, "numberReady": 3,
                           "updatedNumberScheduled": 2, "numberAvailable": 1},
            }),
            json!([
                "logs",
                5,
                4,
                3,
                2,
                1,
                "arch=arm64,disk=ssd",
                "90s",
                "a,b",
                "img:1,img:2",
                "app=logs"
            ]),
        );
    }

    #[test]
    fn disruption_budgets() {
        check(
            "poddisruptionbudgets",
            json!({"metadata": {"name": "b"}, "spec": {"minAvailable": 2}, "status": {"disruptionsAllowed": 1}}),
            json!(["b", "2", "N/A", 1, "<unknown>"]),
        );
        check(
            "poddisruptionbudgets",
            json!({"metadata": {"name": "b"}, "spec": {"maxUnavailable": "30%"}}),
            json!(["b", "N/A", "30%", 0, "<unknown>"]),
        );
    }

    #[test]
    fn s10_1_controllerrevisions() {
        check(
            "controllerrevisions",
            json!({"metadata": {"name": "r", "ownerReferences": [
                {"apiVersion": "v1", "kind": "Pod", "name": "p"},
                {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "logs", "controller": true},
            ]}, "revision": 7}),
            json!(["r", "daemonset.apps/logs", 7, "<unknown>"]),
        );
        check(
            "controllerrevisions",
            json!({"metadata": {"name": "r"}, "revision": 1}),
            json!(["r", "<none>", 1, "<unknown>"]),
        );
    }
}
