//! The `--controllers` list, with the names and the syntax of kube-controller-manager.

use std::str::FromStr;

pub const CERTIFICATE_APPROVER: &str = "certificatesigningrequest-approving-controller";
pub const CERTIFICATE_SIGNER: &str = "certificatesigningrequest-signing-controller";
pub const CERTIFICATE_CLEANER: &str = "certificatesigningrequest-cleaner-controller";
pub const DAEMON_SET: &str = "daemonset-controller";
pub const SCHEDULER: &str = "kube-scheduler";
pub const NODE_IPAM: &str = "node-ipam-controller";
pub const NODE_LIFECYCLE: &str = "node-lifecycle-controller";
pub const TAINT_EVICTION: &str = "taint-eviction-controller";
pub const GARBAGE_COLLECTOR: &str = "garbage-collector-controller";
pub const NAMESPACE: &str = "namespace-controller";
pub const POD_GARBAGE_COLLECTOR: &str = "pod-garbage-collector-controller";
pub const DISRUPTION: &str = "disruption-controller";
pub const RESOURCE_QUOTA: &str = "resourcequota-controller";
pub const ENDPOINT_SLICE: &str = "endpointslice-controller";
pub const ENDPOINTS: &str = "endpoints-controller";
pub const TOKEN_CLEANER: &str = "token-cleaner-controller";

const NAMES: &[&str] = &[
    CERTIFICATE_APPROVER,
    CERTIFICATE_CLEANER,
    CERTIFICATE_SIGNER,
    GARBAGE_COLLECTOR,
    DAEMON_SET,
    DISRUPTION,
    ENDPOINTS,
    NAMESPACE,
    NODE_IPAM,
    NODE_LIFECYCLE,
    POD_GARBAGE_COLLECTOR,
    RESOURCE_QUOTA,
    SCHEDULER,
    ENDPOINT_SLICE,
    TAINT_EVICTION,
    TOKEN_CLEANER,
];

/// The help text of `--controllers`.
pub fn help() -> String {
    format!(
        "Controllers to run, comma-separated: '*' for all, 'name' to enable one, '-name' to disable one\n\n\
         Names: {}. Example, to run the DaemonSet controller as a separate process: \
         --controllers='*,-daemonset-controller'",
        NAMES.join(", ")
    )
}

/// A list such as `*,-daemonset-controller`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection(Vec<String>);

impl Selection {
    /// All controllers.
    pub fn all() -> Self {
        Self(vec!["*".to_owned()])
    }

    /// Whether to run this controller. An entry with its name overrides `*`.
    pub fn runs(&self, name: &str) -> bool {
        let by_name = self.0.iter().find_map(|item| match item.strip_prefix('-') {
            Some(off) => (off == name).then_some(false),
            None => (item == name).then_some(true),
        });
        by_name.unwrap_or_else(|| self.0.iter().any(|item| item == "*"))
    }
}

/// A name that is not in the list.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not in the list of known controllers: {NAMES:?}")]
pub struct UnknownController(String);

impl FromStr for Selection {
    type Err = UnknownController;

    fn from_str(list: &str) -> Result<Self, UnknownController> {
        let items: Vec<String> = list.split(',').map(|item| item.trim().to_owned()).collect();
        for item in &items {
            let name = item.strip_prefix('-').unwrap_or(item);
            if item != "*" && !NAMES.contains(&name) {
                return Err(UnknownController(name.to_owned()));
            }
        }
        Ok(Self(items))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(list: &str, daemon_sets: bool, scheduler: bool) {
        let selection: Selection = list.parse().unwrap();
        assert_eq!(selection.runs(DAEMON_SET), daemon_sets, "{list}");
        assert_eq!(selection.runs(SCHEDULER), scheduler, "{list}");
    }

    #[test]
    fn entries_by_name_override_the_wildcard() {
        check("*", true, true);
        check("*,-daemonset-controller", false, true);
        check("-daemonset-controller, *", false, true);
        check("kube-scheduler", false, true);
        check("-kube-scheduler", false, false);
    }

    #[test]
    fn unknown_names_are_rejected() {
        assert!("*,-daemonset".parse::<Selection>().is_err());
        assert!("".parse::<Selection>().is_err());
    }
}
