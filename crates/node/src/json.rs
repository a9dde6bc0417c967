//! Reads fields of API objects that the API server has validated, as [`kennel_core::tree`] does.

use kennel_core::pod::resources::is_sidecar;
use serde_json::Value;

pub(crate) use kennel_core::tree::{flag, list, text, text_map};

pub(crate) fn texts(object: &Value, path: &str) -> Vec<String> {
    let texts = kennel_core::tree::texts(object, path);
    texts.map(str::to_owned).collect()
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
    let sidecars = sidecars.filter(|container| is_sidecar(container));
    sidecars.chain(list(spec, "containers"))
}
