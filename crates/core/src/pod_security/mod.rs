//! The Pod Security Standards: which pods the levels `baseline` and `restricted` allow, in upstream's words.
//!
//! [`policy()`] reads a namespace's labels; [`evaluate`] lists what a pod violates at a level and version. A version
//! newer than [`LATEST_MINOR`] is evaluated as that one.
//!
//! A check is a function of the pod and the policy's minor version. Its place in [`BASELINE`] or [`RESTRICTED`] is its
//! place in messages, so both tables are sorted by upstream's names of the checks.

mod baseline;
mod exemptions;
mod pod;
mod policy;
mod restricted;
#[cfg(test)]
mod tests;

use std::fmt;

use serde_json::Value;

pub use self::exemptions::Exemptions;
use self::pod::Pod;
pub use self::policy::{
    ENFORCE, ENFORCE_VERSION, LabelError, Level, LevelVersion, Policy, Version, policy,
};

/// The newest version of Kubernetes whose standards are known: 1.36.
pub const LATEST_MINOR: u32 = 36;

/// What one check forbids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// `host namespaces`
    pub reason: &'static str,
    /// `hostNetwork=true`
    pub detail: String,
}

/// What a pod violates, in the order of messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Violations(pub Vec<Violation>);

impl Violations {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The reasons alone, for messages about many pods.
    pub fn reasons(&self) -> String {
        let reasons: Vec<&str> = self.0.iter().map(|violation| violation.reason).collect();
        reasons.join(", ")
    }
}

/// The reasons with their details, for messages about one pod.
impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, Violation { reason, detail }) in self.0.iter().enumerate() {
            let separator = if i == 0 { "" } else { ", " };
            write!(f, "{separator}{reason} ({detail})")?;
        }
        Ok(())
    }
}

type Check = fn(&Pod<'_>, u32) -> Option<Violation>;

/// A check of a table.
struct Rule {
    /// Upstream's name.
    id: &'static str,
    /// The first minor version that has it.
    since: u32,
    /// The baseline check that it replaces.
    overrides: &'static str,
    check: Check,
}

const fn rule(id: &'static str, since: u32, overrides: &'static str, check: Check) -> Rule {
    Rule {
        id,
        since,
        overrides,
        check,
    }
}

static BASELINE: [Rule; 12] = [
    rule("appArmorProfile", 0, "", baseline::app_armor),
    rule("capabilities_baseline", 0, "", baseline::capabilities),
    rule("hostNamespaces", 0, "", baseline::host_namespaces),
    rule("hostPathVolumes", 0, "", baseline::host_path_volumes),
    rule("hostPorts", 0, "", baseline::host_ports),
    rule("hostProbesAndHostLifecycle", 34, "", baseline::probe_hosts),
    rule("privileged", 0, "", baseline::privileged),
    rule("procMount", 0, "", baseline::proc_mount),
    rule("seLinuxOptions", 0, "", baseline::se_linux),
    rule("seccompProfile_baseline", 0, "", baseline::seccomp),
    rule("sysctls", 0, "", baseline::sysctls),
    rule("windowsHostProcess", 0, "", baseline::host_process),
];

static RESTRICTED: [Rule; 7] = [
    rule(
        "allowPrivilegeEscalation",
        8,
        "",
        restricted::privilege_escalation,
    ),
    rule(
        "capabilities_restricted",
        22,
        "capabilities_baseline",
        restricted::capabilities,
    ),
    rule(
        "procMount_restricted",
        35,
        "procMount",
        restricted::proc_mount,
    ),
    rule(
        "restrictedVolumes",
        0,
        "hostPathVolumes",
        restricted::volumes,
    ),
    rule("runAsNonRoot", 0, "", restricted::run_as_non_root),
    rule("runAsUser", 23, "", restricted::run_as_user),
    rule(
        "seccompProfile_restricted",
        19,
        "seccompProfile_baseline",
        restricted::seccomp,
    ),
];

/// What a pod, or the template of one, violates at a level. The arguments are the object's `metadata` and `spec`.
pub fn evaluate(at: LevelVersion, metadata: &Value, spec: &Value) -> Violations {
    if at.level == Level::Privileged {
        return Violations::default();
    }
    let minor = match at.version {
        Version::Latest => LATEST_MINOR,
        Version::Minor(minor) => minor.min(LATEST_MINOR),
    };
    let restricted: &[Rule] = match at.level {
        Level::Restricted => &RESTRICTED,
        Level::Privileged | Level::Baseline => &[],
    };
    let active = |rule: &&Rule| rule.since <= minor;
    let restricted: Vec<&Rule> = restricted.iter().filter(active).collect();
    let is_overridden = |rule: &&Rule| restricted.iter().any(|other| other.overrides == rule.id);
    let baseline = BASELINE.iter().filter(active);
    let baseline: Vec<&Rule> = baseline.filter(|rule| !is_overridden(rule)).collect();
    let pod = Pod::new(metadata, spec);
    let rules = baseline.into_iter().chain(restricted);
    Violations(rules.filter_map(|rule| (rule.check)(&pod, minor)).collect())
}
