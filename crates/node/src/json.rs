//! Reads fields of API objects that the API server has validated: an absent field reads as empty.

use std::collections::BTreeMap;

use serde_json::Value;

pub(crate) fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    object[key].as_str().unwrap_or_default()
}

pub(crate) fn list<'a>(object: &'a Value, key: &str) -> &'a [Value] {
    object[key].as_array().map_or(&[], Vec::as_slice)
}

pub(crate) fn texts(object: &Value, key: &str) -> Vec<String> {
    let texts = list(object, key).iter().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

pub(crate) fn flag(object: &Value, key: &str) -> bool {
    object[key] == true
}

pub(crate) fn map(object: &Value, key: &str) -> BTreeMap<String, String> {
    let entries = object[key].as_object().into_iter().flatten();
    let text = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
    entries.filter_map(text).collect()
}

/// Init containers and main containers of a pod's spec.
pub(crate) fn containers(spec: &Value) -> impl Iterator<Item = &Value> {
    let lists = ["initContainers", "containers"];
    lists.into_iter().flat_map(move |name| list(spec, name))
}

/// All containers of a pod's spec, with the ephemeral ones.
pub(crate) fn all_containers(spec: &Value) -> impl Iterator<Item = &Value> {
    containers(spec).chain(list(spec, "ephemeralContainers"))
}

/// Sidecars and main containers of a pod's spec.
pub(crate) fn long_running_containers(spec: &Value) -> impl Iterator<Item = &Value> {
    let sidecars = list(spec, "initContainers").iter();
    let sidecars = sidecars.filter(|container| text(container, "restartPolicy") == "Always");
    sidecars.chain(list(spec, "containers"))
}
