//! The versions of kinds: those that are served, and those that Kubernetes served once.

use super::{RESOURCES, Resource};

/// Versions that Kubernetes converts from and no longer serves, and what it served in them of the kinds here.
const FORMER_VERSIONS: [(&str, &[&str]); 15] = [
    ("apps/v1beta1", &["ControllerRevision"]),
    ("apps/v1beta2", &["ControllerRevision", "DaemonSet"]),
    (
        "certificates.k8s.io/v1beta1",
        &["CertificateSigningRequest"],
    ),
    ("coordination.k8s.io/v1beta1", &["Lease"]),
    ("discovery.k8s.io/v1beta1", &["EndpointSlice"]),
    ("events.k8s.io/v1beta1", &["Event"]),
    ("extensions/v1beta1", &["DaemonSet", "NetworkPolicy"]),
    ("networking.k8s.io/v1beta1", &["IPAddress", "ServiceCIDR"]),
    ("node.k8s.io/v1alpha1", &["RuntimeClass"]),
    ("node.k8s.io/v1beta1", &["RuntimeClass"]),
    ("rbac.authorization.k8s.io/v1alpha1", RBAC),
    ("rbac.authorization.k8s.io/v1beta1", RBAC),
    ("scheduling.k8s.io/v1alpha1", &["PriorityClass"]),
    ("scheduling.k8s.io/v1beta1", &["PriorityClass"]),
    (
        "storage.k8s.io/v1beta1",
        &["CSIDriver", "CSINode", "StorageClass"],
    ),
];
const RBAC: &[&str] = &["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"];

/// Whether objects of a resource have, or had, this version: it is served for the kind, or Kubernetes served it once and still
/// converts from it.
pub(crate) fn is_version(row: &Resource, api_version: &str) -> bool {
    let mut served = RESOURCES.iter().filter(|other| other.kind == row.kind);
    served.any(|other| other.api_version() == api_version)
        || FORMER_VERSIONS
            .iter()
            .any(|(version, kinds)| *version == api_version && kinds.contains(&row.kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::find;

    #[test]
    fn a_kind_has_the_versions_that_are_served_and_those_that_were() {
        let daemonset = find("apps", "v1", "daemonsets").unwrap();
        for version in ["apps/v1", "apps/v1beta2", "extensions/v1beta1"] {
            assert!(is_version(daemonset, version), "{version}");
        }
        for version in ["apps/v1beta1", "apps/v2", "v1", "example.com/v1", ""] {
            assert!(!is_version(daemonset, version), "{version}");
        }
        // A kind of two groups.
        let event = find("", "v1", "events").unwrap();
        assert!(is_version(event, "events.k8s.io/v1"));
    }

    #[test]
    fn former_versions_are_of_kinds_that_are_served() {
        for (version, kinds) in FORMER_VERSIONS {
            for kind in kinds {
                let rows: Vec<_> = RESOURCES.iter().filter(|row| row.kind == *kind).collect();
                assert!(!rows.is_empty(), "{kind}");
                let is_served = rows.iter().any(|row| row.api_version() == version);
                assert!(!is_served, "{kind} of {version}");
            }
        }
    }
}
