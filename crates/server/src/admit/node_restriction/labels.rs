//! The labels that a node may set on itself. Node selectors place pods by labels, so a node that could set
//! them all could attract any pod, and read the secrets of that pod.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::tree::map;

/// The prefix of labels that no node may set.
const RESTRICTED: &str = "node-restriction.kubernetes.io";
/// The prefixes that Kubernetes reserves.
const RESERVED: [&str; 2] = ["kubernetes.io", "k8s.io"];
/// The reserved labels that a node may set.
const OWN: [&str; 11] = [
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/instance-type",
    "beta.kubernetes.io/os",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
];
/// The reserved prefixes below which a node may set any label.
const OPEN: [&str; 2] = ["kubelet.kubernetes.io", "node.kubernetes.io"];

/// The changed labels that a node may not set, sorted, as refusals list them; `None` if there are none.
/// `old` is null on create.
pub(super) fn forbidden(new: &Value, old: &Value) -> Option<String> {
    let (new, old) = (map(new, "metadata.labels"), map(old, "metadata.labels"));
    let keys: BTreeSet<&str> = new.keys().chain(old.keys()).map(String::as_str).collect();
    let changed = keys
        .into_iter()
        .filter(|key| new.get(*key) != old.get(*key));
    let forbidden: Vec<&str> = changed.filter(|key| !may_set(key)).collect();
    (!forbidden.is_empty()).then(|| forbidden.join(", "))
}

fn may_set(key: &str) -> bool {
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    if is_below(domain, RESTRICTED) {
        return false;
    }
    !RESERVED.iter().any(|reserved| is_below(domain, reserved))
        || OWN.contains(&key)
        || OPEN.iter().any(|open| is_below(domain, open))
}

fn is_below(domain: &str, parent: &str) -> bool {
    let rest = domain.strip_suffix(parent);
    rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protected_prefixes_are_protected() {
        for key in OWN {
            assert!(may_set(key), "{key}");
        }
        for key in [
            "app",
            "example.com/role",
            "node.kubernetes.io/anything",
            "sub.node.kubernetes.io/anything",
            "kubelet.kubernetes.io/x",
            "notkubernetes.io/x",
        ] {
            assert!(may_set(key), "{key}");
        }
        for key in [
            "node-restriction.kubernetes.io/pci",
            "example.node-restriction.kubernetes.io/pci",
            "node-role.kubernetes.io/master",
            "kubernetes.io/anything",
            "k8s.io/x",
            "cluster.k8s.io/x",
            "topology.kubernetes.io/rack",
        ] {
            assert!(!may_set(key), "{key}");
        }
    }
}
