//! Which controllers run, in the words of kube-controller-manager's `--controllers`.

use std::str::FromStr;

/// What approves requests for certificates.
pub(crate) const APPROVER: &str = "certificatesigningrequest-approving-controller";
/// What signs them.
pub(crate) const SIGNER: &str = "certificatesigningrequest-signing-controller";
/// What removes them when nobody needs them any more.
pub(crate) const REQUESTS: &str = "certificatesigningrequest-cleaner-controller";
/// The DaemonSet controller.
pub(crate) const DAEMON_SETS: &str = "daemonset-controller";
/// The scheduler.
pub(crate) const SCHEDULER: &str = "kube-scheduler";
/// What notices that a node is silent.
pub(crate) const NODE_LIFECYCLE: &str = "node-lifecycle-controller";
/// What drives pods off nodes.
pub(crate) const TAINT_EVICTION: &str = "taint-eviction-controller";
/// The garbage collector.
pub(crate) const COLLECTOR: &str = "garbage-collector-controller";
/// The namespace controller.
pub(crate) const NAMESPACES: &str = "namespace-controller";
/// What clears up after pods.
pub(crate) const PODS: &str = "pod-garbage-collector-controller";
/// What says where the pods of services are, in slices.
pub(crate) const SLICES: &str = "endpointslice-controller";
/// And the same in one object.
pub(crate) const ENDPOINTS: &str = "endpoints-controller";
/// What removes bootstrap tokens that have expired.
pub(crate) const TOKENS: &str = "token-cleaner-controller";

const NAMES: &[&str] = &[
    APPROVER,
    REQUESTS,
    SIGNER,
    COLLECTOR,
    DAEMON_SETS,
    ENDPOINTS,
    NAMESPACES,
    NODE_LIFECYCLE,
    PODS,
    SCHEDULER,
    SLICES,
    TAINT_EVICTION,
    TOKENS,
];

/// What the command line says of `--controllers`.
pub(crate) fn help() -> String {
    format!(
        "Which controllers to run: '*' for all, 'name' for one, '-name' for all but one\n\n\
         The names are {}. To run the DaemonSet controller as a process of its own, for example: \
         --controllers='*,-daemonset-controller'",
        NAMES.join(", ")
    )
}

/// A list such as `*,-daemonset-controller`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Selection(Vec<String>);

impl Selection {
    /// Does this one run? What is named itself counts before `*`.
    pub(crate) fn runs(&self, name: &str) -> bool {
        let by_name = self.0.iter().find_map(|item| match item.strip_prefix('-') {
            Some(off) => (off == name).then_some(false),
            None => (item == name).then_some(true),
        });
        by_name.unwrap_or_else(|| self.0.iter().any(|item| item == "*"))
    }
}

impl FromStr for Selection {
    type Err = String;

    fn from_str(list: &str) -> Result<Self, String> {
        let items: Vec<String> = list.split(',').map(|item| item.trim().to_owned()).collect();
        for item in &items {
            let name = item.strip_prefix('-').unwrap_or(item);
            if item != "*" && !NAMES.contains(&name) {
                return Err(format!(
                    "{name:?} is not in the list of known controllers: {NAMES:?}"
                ));
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
        assert_eq!(selection.runs(DAEMON_SETS), daemon_sets, "{list}");
        assert_eq!(selection.runs(SCHEDULER), scheduler, "{list}");
    }

    #[test]
    fn a_list_says_who_runs() {
        check("*", true, true);
        check("*,-daemonset-controller", false, true);
        check("-daemonset-controller, *", false, true);
        check("kube-scheduler", false, true);
        check("-kube-scheduler", false, false);
    }

    #[test]
    fn names_that_nobody_has_are_refused() {
        assert!("*,-daemonset".parse::<Selection>().is_err());
        assert!("".parse::<Selection>().is_err());
    }
}
