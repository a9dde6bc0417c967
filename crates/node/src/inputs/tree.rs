//! Reading fields of a pod, whose shape the API has already judged: what is absent reads as empty.

use serde_json::Value;

/// A text; empty when absent.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// A list; empty when absent.
pub(super) fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

/// A list of texts; empty when absent.
pub(super) fn texts(value: &Value, key: &str) -> Vec<String> {
    let texts = list(value, key).iter().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

/// A switch; off when absent.
pub(super) fn flag(value: &Value, key: &str) -> bool {
    value[key] == true
}

/// A map of texts; empty when absent.
pub(super) fn map(value: &Value, key: &str) -> std::collections::BTreeMap<String, String> {
    let entries = value[key].as_object().into_iter().flatten();
    let text = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
    entries.filter_map(text).collect()
}

/// All containers of a pod's spec, those that run first included.
pub(super) fn containers(spec: &Value) -> impl Iterator<Item = &Value> {
    let lists = ["initContainers", "containers"];
    lists.into_iter().flat_map(move |name| list(spec, name))
}

/// Those of [`containers`] that stay while the pod runs.
pub(super) fn lasting(spec: &Value) -> impl Iterator<Item = &Value> {
    let sidecars = list(spec, "initContainers").iter();
    let sidecars = sidecars.filter(|container| container["restartPolicy"] == "Always");
    sidecars.chain(list(spec, "containers"))
}
