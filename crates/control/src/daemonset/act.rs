//! The controller's writes. Each says whether it worked; when to try again is decided elsewhere.

use kennel_core::daemonset::Counters;
use kube::{Client, Error};
use serde_json::{Value, json};

use kennel_client::api;

/// Creates the pod of a DaemonSet for a node.
pub(super) async fn create_pod(client: &Client, body: &Value, node: &str) -> bool {
    let namespace = body["metadata"]["namespace"].as_str().unwrap_or_default();
    let path = api::core_path(namespace, "pods");
    let owner = &body["metadata"]["ownerReferences"][0]["name"];
    worked(api::create(client, &path, body).await, || {
        format!("creating a pod of daemonset {namespace}/{owner} for node {node}")
    })
}

/// Deletes a pod with its own grace period. A pod that is gone already is as good as deleted.
pub(super) async fn delete_pod(client: &Client, namespace: &str, name: &str, uid: &str) -> bool {
    let path = api::core_path(namespace, "pods");
    match api::delete(client, &path, name, uid, None).await {
        Err(error) if api::already_gone(&error) => true,
        result => worked(result, || format!("deleting pod {namespace}/{name}")),
    }
}

/// Writes the counters and leaves everything else in the status alone (rule 6.2.3).
pub(super) async fn write_status(
    client: &Client,
    namespace: &str,
    name: &str,
    uid: &str,
    counters: Counters,
) -> bool {
    let path = api::group_path("apps/v1", namespace, "daemonsets");
    let patch = json!({"metadata": {"uid": uid}, "status": status(counters)});
    match api::merge(client, &path, name, Some("status"), &patch).await {
        // Gone: there is no status left to write. A conflict is no such thing: tried again, it goes
        // through, or the watch tells that another one has its name.
        Err(error) if api::code(&error) == Some(404) => true,
        result => worked(result, || {
            format!("writing the status of daemonset {namespace}/{name}")
        }),
    }
}

/// Counters that are zero are left out, but for the four that are always there (rule 1.1.5).
fn status(counters: Counters) -> Value {
    let optional = |number: i64| (number != 0).then_some(number);
    json!({
        "desiredNumberScheduled": counters.desired,
        "currentNumberScheduled": counters.current,
        "numberMisscheduled": counters.misscheduled,
        "numberReady": counters.ready,
        "updatedNumberScheduled": optional(counters.updated),
        "numberAvailable": optional(counters.available),
        "numberUnavailable": optional(counters.unavailable()),
        "observedGeneration": optional(counters.observed_generation),
    })
}

fn worked(result: Result<(), Error>, what: impl FnOnce() -> String) -> bool {
    match result {
        Ok(()) => true,
        Err(error) => {
            tracing::warn!("{} failed: {}", what(), api::explain(&error));
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s1_1_5_four_counters_are_always_written_and_the_others_when_not_zero() {
        let counters = Counters {
            desired: 3,
            observed_generation: 1,
            ..Counters::default()
        };
        assert_eq!(
            status(counters),
            json!({"desiredNumberScheduled": 3, "currentNumberScheduled": 0,
                   "numberMisscheduled": 0, "numberReady": 0, "updatedNumberScheduled": null,
                   "numberAvailable": null, "numberUnavailable": 3, "observedGeneration": 1})
        );
    }
}
