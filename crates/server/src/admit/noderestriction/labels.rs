//! Labels that a node may give itself, and those it may not: pods are steered by labels, so a node that
//! could choose them all could choose its pods, and with them what it may read.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::kinds::tree::map;

/// Labels that only others may set.
const RESTRICTED: &str = "node-restriction.kubernetes.io";
/// Where labels are Kubernetes' own.
const RESERVED: [&str; 2] = ["kubernetes.io", "k8s.io"];
/// What a node may set of those.
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
/// Where a node may set any label.
const OPEN: [&str; 2] = ["kubelet.kubernetes.io", "node.kubernetes.io"];

/// The labels that differ and are not the node's to change, sorted, as refusals list them; `None` if
/// there are none. What was there before is null on create.
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
