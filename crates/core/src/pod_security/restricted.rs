//! The checks of the level `restricted`, beside those of `baseline`.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Violation;
use super::baseline::{added, any_proc_mount, forbidden_profile, forbidden_seccomp};
use super::pod::{Pod, containers, plural, quoted, quoted_set, setters, text, texts};

/// Since this minor version, checks of fields that Windows pods cannot have skip them.
const SKIPS_WINDOWS: u32 = 25;
/// Since this minor version, pods with a user namespace may run as root in it.
const TRUSTS_USER_NAMESPACES: u32 = 35;

const ALLOWED_VOLUMES: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

/// In the order in which upstream looks for the type of a forbidden volume.
const FORBIDDEN_VOLUMES: [&str; 21] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "nfs",
    "iscsi",
    "glusterfs",
    "rbd",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "fc",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "storageos",
];

pub(super) fn privilege_escalation(pod: &Pod<'_>, minor: u32) -> Option<Violation> {
    if minor >= SKIPS_WINDOWS && pod.is_windows() {
        return None;
    }
    let bad = pod.names(|container| container.security()["allowPrivilegeEscalation"] != false);
    (!bad.is_empty()).then(|| Violation {
        reason: "allowPrivilegeEscalation != false",
        detail: format!(
            "{} must set securityContext.allowPrivilegeEscalation=false",
            containers(&bad)
        ),
    })
}

pub(super) fn capabilities(pod: &Pod<'_>, minor: u32) -> Option<Violation> {
    if minor >= SKIPS_WINDOWS && pod.is_windows() {
        return None;
    }
    let drops_all =
        |security: &Value| texts(&security["capabilities"], "drop").any(|name| name == "ALL");
    let keeping = pod.names(|container| !drops_all(container.security()));
    let (adding, forbidden) = added(pod, |name| name == "NET_BIND_SERVICE");
    let mut details = Vec::new();
    if !keeping.is_empty() {
        details.push(format!(
            "{} must set securityContext.capabilities.drop=[\"ALL\"]",
            containers(&keeping)
        ));
    }
    if !adding.is_empty() {
        details.push(format!(
            "{} must not include {} in securityContext.capabilities.add",
            containers(&adding),
            quoted_set(&forbidden)
        ));
    }
    (!details.is_empty()).then(|| Violation {
        reason: "unrestricted capabilities",
        detail: details.join("; "),
    })
}

/// Not even with a user namespace.
pub(super) fn proc_mount(pod: &Pod<'_>, _: u32) -> Option<Violation> {
    any_proc_mount(pod)
}

pub(super) fn volumes(pod: &Pod<'_>, _: u32) -> Option<Violation> {
    let has = |volume: &Value, field: &&str| volume[*field].is_object();
    let is_bad = |volume: &&Value| !ALLOWED_VOLUMES.iter().any(|field| has(volume, field));
    let bad: Vec<&Value> = pod.volumes().iter().filter(is_bad).collect();
    if bad.is_empty() {
        return None;
    }
    let kind = |volume: &&Value| {
        let found = FORBIDDEN_VOLUMES.iter().find(|field| has(volume, field));
        *found.unwrap_or(&"unknown")
    };
    let kinds: BTreeSet<&str> = bad.iter().map(kind).collect();
    let names: Vec<&str> = bad.iter().map(|volume| text(volume, "name")).collect();
    Some(Violation {
        reason: "restricted volume types",
        detail: format!(
            "{} {} {} {} {}",
            plural(names.len(), "volume", "volumes"),
            quoted(names.iter().copied()),
            plural(names.len(), "uses", "use"),
            plural(
                kinds.len(),
                "restricted volume type",
                "restricted volume types"
            ),
            quoted(kinds)
        ),
    })
}

pub(super) fn run_as_non_root(pod: &Pod<'_>, minor: u32) -> Option<Violation> {
    const REASON: &str = "runAsNonRoot != true";
    if minor >= TRUSTS_USER_NAMESPACES && pod.has_user_namespace() {
        return None;
    }
    let given = |security: &Value| security["runAsNonRoot"].as_bool();
    let in_pod = given(pod.security());
    let explicit = pod.names(|container| given(container.security()) == Some(false));
    if let Some(who) = setters(in_pod == Some(false), &explicit) {
        return Some(Violation {
            reason: REASON,
            detail: format!("{who} must not set securityContext.runAsNonRoot=false"),
        });
    }
    if in_pod == Some(true) {
        return None;
    }
    let implicit = pod.names(|container| given(container.security()).is_none());
    (!implicit.is_empty()).then(|| Violation {
        reason: REASON,
        detail: format!(
            "pod or {} must set securityContext.runAsNonRoot=true",
            containers(&implicit)
        ),
    })
}

pub(super) fn run_as_user(pod: &Pod<'_>, minor: u32) -> Option<Violation> {
    if minor >= TRUSTS_USER_NAMESPACES && pod.has_user_namespace() {
        return None;
    }
    let is_root = |security: &Value| security["runAsUser"] == 0;
    let bad = pod.names(|container| is_root(container.security()));
    let who = setters(is_root(pod.security()), &bad)?;
    Some(Violation {
        reason: "runAsUser=0",
        detail: format!("{who} must not set runAsUser=0"),
    })
}

pub(super) fn seccomp(pod: &Pod<'_>, minor: u32) -> Option<Violation> {
    if minor >= SKIPS_WINDOWS && pod.is_windows() {
        return None;
    }
    if let Some(violation) = forbidden_seccomp(pod) {
        return Some(violation);
    }
    let is_set = |security: &Value| {
        let profile = &security["seccompProfile"];
        profile.is_object() && forbidden_profile(security, "seccompProfile").is_none()
    };
    if is_set(pod.security()) {
        return None;
    }
    let implicit = pod.names(|container| !is_set(container.security()));
    (!implicit.is_empty()).then(|| Violation {
        reason: "seccompProfile",
        detail: format!(
            "pod or {} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\"",
            containers(&implicit)
        ),
    })
}
