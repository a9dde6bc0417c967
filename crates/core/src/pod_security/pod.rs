//! The parts of a pod that the checks read, and the words of their messages.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::tree::text_entries;
pub(super) use crate::tree::{list, text, texts};

/// A pod or the template of one.
pub(super) struct Pod<'a> {
    metadata: &'a Value,
    pub(super) spec: &'a Value,
}

impl<'a> Pod<'a> {
    pub(super) fn new(metadata: &'a Value, spec: &'a Value) -> Self {
        Self { metadata, spec }
    }

    /// Init containers, containers and ephemeral containers.
    pub(super) fn containers(&self) -> impl Iterator<Item = Container<'a>> + use<'a> {
        let spec = self.spec;
        ["initContainers", "containers", "ephemeralContainers"]
            .into_iter()
            .flat_map(move |field| list(spec, field))
            .map(Container)
    }

    /// The names of the containers for which `is_bad` holds.
    pub(super) fn names(&self, is_bad: impl Fn(Container<'a>) -> bool) -> Vec<&'a str> {
        let bad = self.containers().filter(|container| is_bad(*container));
        bad.map(Container::name).collect()
    }

    pub(super) fn security(&self) -> &'a Value {
        &self.spec["securityContext"]
    }

    pub(super) fn annotations(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        text_entries(self.metadata, "annotations")
    }

    pub(super) fn volumes(&self) -> &'a [Value] {
        list(self.spec, "volumes")
    }

    pub(super) fn is_windows(&self) -> bool {
        text(self.spec, "os.name") == "windows"
    }

    /// Whether the pod has a user namespace of its own.
    pub(super) fn has_user_namespace(&self) -> bool {
        self.spec["hostUsers"] == false
    }
}

#[derive(Clone, Copy)]
pub(super) struct Container<'a>(pub(super) &'a Value);

impl<'a> Container<'a> {
    pub(super) fn name(self) -> &'a str {
        text(self.0, "name")
    }

    pub(super) fn security(self) -> &'a Value {
        &self.0["securityContext"]
    }
}

/// `"a", "b"`. Upstream escapes nothing.
pub(super) fn quoted<'a>(items: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = items
        .into_iter()
        .map(|item| format!("\"{item}\""))
        .collect();
    quoted.join(", ")
}

pub(super) fn quoted_set(items: &BTreeSet<String>) -> String {
    quoted(items.iter().map(String::as_str))
}

pub(super) fn plural(count: usize, one: &'static str, many: &'static str) -> &'static str {
    if count == 1 { one } else { many }
}

/// `container "a"` or `containers "a", "b"`.
pub(super) fn containers(names: &[&str]) -> String {
    let what = plural(names.len(), "container", "containers");
    format!("{what} {}", quoted(names.iter().copied()))
}

/// `pod and containers "a", "b"`; `None` if nothing is set where it may not be.
pub(super) fn setters(in_pod: bool, in_containers: &[&str]) -> Option<String> {
    match (in_pod, in_containers) {
        (false, []) => None,
        (true, []) => Some("pod".to_owned()),
        (false, names) => Some(containers(names)),
        (true, names) => Some(format!("pod and {}", containers(names))),
    }
}
