//! The lives of pods, from what a watch said of them. Pure.

use std::collections::BTreeMap;

use serde_json::Value;

/// A watch event, and when it came: seconds since the update began.
pub(super) type Seen = (f64, Value);

/// A pod's life. Seconds since the update began.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Life {
    /// Where it ran.
    pub(super) node: String,
    /// Which version it was of.
    pub(super) image: String,
    /// When it was first seen.
    pub(super) created: f64,
    /// When it became ready.
    pub(super) ready: Option<f64>,
    /// When its end was asked for.
    pub(super) deleted: Option<f64>,
    /// When it was gone.
    pub(super) gone: Option<f64>,
}

impl Life {
    /// Was it ready then?
    pub(super) fn is_ready(&self, at: f64) -> bool {
        let began = self.ready.is_some_and(|ready| ready <= at);
        began && self.deleted.or(self.gone).is_none_or(|end| at < end)
    }
}

/// All lives, by name.
pub(super) fn of(seen: &[Seen]) -> Vec<Life> {
    let mut lives: BTreeMap<String, Life> = BTreeMap::new();
    for (at, event) in seen {
        // What was there when the watch began has been there for long.
        let at = if *at < 0.0 { &f64::NEG_INFINITY } else { at };
        let (kind, pod) = (&event["type"], &event["object"]);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let life = lives.entry(text(&pod["metadata"]["name"]));
        let life = life.or_insert_with(|| Life {
            image: text(&pod["spec"]["containers"][0]["image"]),
            created: *at,
            ..Life::default()
        });
        if let Some(node) = pod["spec"]["nodeName"].as_str() {
            node.clone_into(&mut life.node);
        }
        if is_ready(pod) {
            life.ready.get_or_insert(*at);
        }
        if pod["metadata"]["deletionTimestamp"].is_string() {
            life.deleted.get_or_insert(*at);
        }
        if kind == "DELETED" {
            life.gone.get_or_insert(*at);
        }
    }
    lives.into_values().collect()
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
    fn a_life_is_told_by_what_was_seen() {
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
        let seen = [
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
                2.0,
                json!({"type": "MODIFIED", "object": pod(json!({"metadata": {"deletionTimestamp": "t"}}))}),
            ),
            (3.0, json!({"type": "DELETED", "object": pod(json!({}))})),
        ];
        let expected = Life {
            node: "n".to_owned(),
            image: "i:1".to_owned(),
            created: f64::NEG_INFINITY,
            ready: Some(1.0),
            deleted: Some(2.0),
            gone: Some(3.0),
        };
        assert_eq!(of(&seen), std::slice::from_ref(&expected));
        let check = |at, ready| assert_eq!(expected.is_ready(at), ready, "{at}");
        check(0.5, false);
        check(1.5, true);
        check(2.5, false);
    }
}
