//! The lifetimes of pods, from watch events. Pure.

use std::collections::BTreeMap;

use serde_json::Value;

/// A watch event and its time, in seconds since the start of the update.
pub(super) type TimedEvent = (f64, Value);

/// Times are in seconds since the start of the update.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PodLifetime {
    pub(super) node: String,
    pub(super) image: String,
    /// The first event.
    pub(super) created: f64,
    pub(super) ready: Option<f64>,
    /// When a container was seen that had been restarted.
    pub(super) crashed: Option<f64>,
    /// When its deletionTimestamp was set.
    pub(super) deleted: Option<f64>,
    pub(super) gone: Option<f64>,
}

impl PodLifetime {
    pub(super) fn is_ready(&self, at: f64) -> bool {
        let became_ready = self.ready.is_some_and(|ready| ready <= at);
        became_ready && self.deleted.or(self.gone).is_none_or(|end| at < end)
    }
}

/// The lifetimes of all pods, by name.
pub(super) fn of(events: &[TimedEvent]) -> Vec<PodLifetime> {
    let mut lifetimes: BTreeMap<String, PodLifetime> = BTreeMap::new();
    for (at, event) in events {
        // Pods of the initial list are older than the watch.
        let at = if *at < 0.0 { &f64::NEG_INFINITY } else { at };
        let (kind, pod) = (&event["type"], &event["object"]);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let lifetime = lifetimes.entry(text(&pod["metadata"]["name"]));
        let lifetime = lifetime.or_insert_with(|| PodLifetime {
            image: text(&pod["spec"]["containers"][0]["image"]),
            created: *at,
            ..PodLifetime::default()
        });
        if let Some(node) = pod["spec"]["nodeName"].as_str() {
            node.clone_into(&mut lifetime.node);
        }
        if is_ready(pod) {
            lifetime.ready.get_or_insert(*at);
        }
        let restarts = &pod["status"]["containerStatuses"][0]["restartCount"];
        if restarts.as_u64() > Some(0) {
            lifetime.crashed.get_or_insert(*at);
        }
        if pod["metadata"]["deletionTimestamp"].is_string() {
            lifetime.deleted.get_or_insert(*at);
        }
        if kind == "DELETED" {
            lifetime.gone.get_or_insert(*at);
        }
    }
    lifetimes.into_values().collect()
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    let is = |one: &Value| one["type"] == "Ready" && one["status"] == "True";
    conditions.into_iter().flatten().any(is)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lifetimes_follow_from_watch_events() {
        let pod = |extra: Value| {
            let mut pod =
                json!({"metadata": {"name": "a"}, "spec": {"containers": [{"image": "i:1"}]}});
            for (key, value) in extra.as_object().unwrap() {
                for (inner, value) in value.as_object().unwrap() {
                    pod[key][inner] = value.clone();
                }
            }
            pod
        };
        let ready = json!([{"type": "Ready", "status": "True"}]);
        let events = [
            (-1.0, json!({"type": "ADDED", "object": pod(json!({}))})),
            (
                0.0,
                json!({"type": "MODIFIED", "object": pod(json!({"spec": {"nodeName": "n"}}))}),
            ),
            (
                1.0,
                json!({"type": "MODIFIED", "object": pod(json!({"status": {"conditions": ready}}))}),
            ),
            (
                1.5,
                json!({"type": "MODIFIED", "object": pod(json!({"status": {
                    "conditions": ready, "containerStatuses": [{"restartCount": 1}]}}))}),
            ),
            (
                2.0,
                json!({"type": "MODIFIED", "object": pod(json!({"metadata": {"deletionTimestamp": "t"}}))}),
            ),
            (3.0, json!({"type": "DELETED", "object": pod(json!({}))})),
        ];
        let expected = PodLifetime {
            node: "n".to_owned(),
            image: "i:1".to_owned(),
            created: f64::NEG_INFINITY,
            ready: Some(1.0),
            crashed: Some(1.5),
            deleted: Some(2.0),
            gone: Some(3.0),
        };
        assert_eq!(of(&events), std::slice::from_ref(&expected));
        let check = |at, ready| assert_eq!(expected.is_ready(at), ready, "{at}");
        check(0.5, false);
        check(1.5, true);
        check(2.5, false);
    }
}
