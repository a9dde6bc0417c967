//! Validates the security contexts of a pod and its containers.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value;

use super::windows::windows_options;
use crate::field::{ErrorList as _, Errors, Path};
use crate::kinds::check::{descending_path, id, one_of, optional_choice};
use crate::tree::{flag, int, list, opt_flag, opt_text, text, texts};

const PROFILES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];
const PROFILE_PATH_MAX: usize = 4095;
const SYSCTL_LENGTH_MAX: usize = 253;
const SYSCTL_FORM: &str = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
/// Upstream's Go names of the fields, in the order in which it prints a security context.
const CONTEXT_FIELDS: [(&str, &str); 12] = [
    ("Capabilities", "capabilities"),
    ("Privileged", "privileged"),
    ("SELinuxOptions", "seLinuxOptions"),
    ("WindowsOptions", "windowsOptions"),
    ("RunAsUser", "runAsUser"),
    ("RunAsGroup", "runAsGroup"),
    ("RunAsNonRoot", "runAsNonRoot"),
    ("ReadOnlyRootFilesystem", "readOnlyRootFilesystem"),
    ("AllowPrivilegeEscalation", "allowPrivilegeEscalation"),
    ("ProcMount", "procMount"),
    ("SeccompProfile", "seccompProfile"),
    ("AppArmorProfile", "appArmorProfile"),
];

/// Checks the security context of a container. `host_users` says that the pod shares the host's
/// user namespace.
pub(super) fn container(errors: &mut Errors, container: &Value, at: &Path, host_users: bool) {
    let Some(context) = container.get("securityContext") else {
        return;
    };
    let at = at.child("securityContext");
    for name in ["runAsUser", "runAsGroup"] {
        if let Some(number) = int(context, name) {
            id(errors, || at.child(name), number);
        }
    }
    if let Some(mount) = opt_text(context, "procMount") {
        let at = at.child("procMount");
        one_of(errors, &at, mount, &["Default", "Unmasked"]);
        if host_users && mount == "Unmasked" {
            errors.invalid(&at, mount, "`hostUsers` must be false to use `Unmasked`");
        }
    }
    seccomp(errors, context, &at);
    escalation(errors, context, &at);
    windows_options(errors, context, &at);
    app_armor(errors, context, &at);
}

fn escalation(errors: &mut Errors, context: &Value, at: &Path) {
    if opt_flag(context, "allowPrivilegeEscalation") != Some(false) {
        return;
    }
    if flag(context, "privileged") {
        let why = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
        errors.invalid_shown(at, spelled(context), why);
    }
    let Some(capabilities) = context.get("capabilities") else {
        return;
    };
    for _ in texts(capabilities, "add").filter(|capability| *capability == "CAP_SYS_ADMIN") {
        let why =
            "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
        errors.invalid_shown(at, spelled(context), why);
    }
}

/// A security context as upstream prints it: the fields in the order of its source, all of them.
fn spelled(context: &Value) -> String {
    let mut out = String::from("{");
    for (i, (name, key)) in CONTEXT_FIELDS.iter().enumerate() {
        let comma = if i == 0 { "" } else { "," };
        let value = match (*key, context.get(key)) {
            (_, None) => "null".to_owned(),
            ("capabilities", Some(capabilities)) => {
                let list = |key: &str| capabilities.get(key).unwrap_or(&Value::Null).to_string();
                format!("{{\"Add\":{},\"Drop\":{}}}", list("add"), list("drop"))
            }
            (_, Some(value)) => value.to_string(),
        };
        let _ = write!(out, "{comma}\"{name}\":{value}");
    }
    out.push('}');
    out
}

/// Checks the security context of a pod.
pub(super) fn pod(errors: &mut Errors, spec: &Value, at: &Path) {
    let Some(context) = spec.get("securityContext") else {
        return;
    };
    let at = at.child("securityContext");
    for name in ["fsGroup", "runAsUser", "runAsGroup"] {
        if let Some(number) = int(context, name) {
            id(errors, || at.child(name), number);
        }
    }
    for (i, group) in list(context, "supplementalGroups").iter().enumerate() {
        let group = group.as_i64().unwrap_or(0);
        id(errors, || at.child("supplementalGroups").index(i), group);
    }
    if flag(spec, "shareProcessNamespace") && flag(spec, "hostPID") {
        let why = "ShareProcessNamespace and HostPID cannot both be enabled";
        errors.invalid(&at.child("shareProcessNamespace"), true, why);
    }
    sysctls(errors, context, spec, &at);
    let policies = ["Always", "OnRootMismatch"];
    optional_choice(errors, context, &at, "fsGroupChangePolicy", &policies);
    seccomp(errors, context, &at);
    windows_options(errors, context, &at);
    app_armor(errors, context, &at);
    let policies = ["Merge", "Strict"];
    optional_choice(errors, context, &at, "supplementalGroupsPolicy", &policies);
    let policies = ["MountOption", "Recursive"];
    optional_choice(errors, context, &at, "seLinuxChangePolicy", &policies);
}

fn sysctls(errors: &mut Errors, context: &Value, spec: &Value, at: &Path) {
    let mut seen = BTreeSet::new();
    for (i, sysctl) in list(context, "sysctls").iter().enumerate() {
        let name = text(sysctl, "name");
        let at = || at.child("sysctls").index(i).child("name");
        if name.is_empty() {
            errors.required(&at(), "");
        } else if !is_sysctl(name) {
            let why = format!(
                "must have at most {SYSCTL_LENGTH_MAX} characters and match regex {SYSCTL_FORM}"
            );
            errors.invalid(&at(), name, &why);
        } else if seen.contains(name) {
            errors.duplicate(&at(), name);
        }
        seen.insert(name);
        if let Some(why) = shared_with_host(name, spec) {
            errors.invalid(&at(), name, why);
        }
    }
}

fn is_sysctl(name: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let segment = |segment: &str| {
        let bytes = segment.as_bytes();
        bytes.first().is_some_and(|byte| word(*byte))
            && bytes.last().is_some_and(|byte| word(*byte))
            && bytes.iter().all(|byte| word(*byte) || b"-_".contains(byte))
    };
    name.len() <= SYSCTL_LENGTH_MAX && name.split(['.', '/']).all(segment)
}

/// A pod may not set sysctls of a namespace that it shares with the host.
fn shared_with_host(name: &str, spec: &Value) -> Option<&'static str> {
    let name = name.replace('/', ".");
    let is_ipc = ["kernel.shm", "kernel.msg", "fs.mqueue."]
        .iter()
        .any(|prefix| name.starts_with(prefix))
        || name == "kernel.sem";
    if flag(spec, "hostNetwork") && name.starts_with("net.") {
        Some("may not be specified when 'hostNetwork' is true")
    } else if flag(spec, "hostIPC") && is_ipc {
        Some("may not be specified when 'hostIPC' is true")
    } else {
        None
    }
}

fn seccomp(errors: &mut Errors, context: &Value, at: &Path) {
    let Some(profile) = context.get("seccompProfile") else {
        return;
    };
    let at = at.child("seccompProfile");
    let kind = text(profile, "type");
    if kind.is_empty() {
        let why = "type is required when seccompProfile is set";
        errors.required(&at.child("type"), why);
    } else {
        one_of(errors, &at.child("type"), kind, &PROFILES);
    }
    let local = opt_text(profile, "localhostProfile");
    let at = at.child("localhostProfile");
    match (kind, local) {
        ("Localhost", None) => {
            errors.required(&at, "must be set when seccomp type is Localhost");
        }
        ("Localhost", Some(path)) => descending_path(errors, &at, path),
        (_, Some(path)) => {
            let why = "can only be set when seccomp type is Localhost";
            let shown = format!(
                "{{\"Type\":{},\"LocalhostProfile\":{}}}",
                Value::from(kind),
                Value::from(path)
            );
            errors.invalid_shown(&at, shown, why);
        }
        (_, None) => {}
    }
}

fn app_armor(errors: &mut Errors, context: &Value, at: &Path) {
    let Some(profile) = context.get("appArmorProfile") else {
        return;
    };
    let at = at.child("appArmorProfile");
    let local = opt_text(profile, "localhostProfile");
    match text(profile, "type") {
        "Localhost" => local_profile(errors, local.unwrap_or(""), &at.child("localhostProfile")),
        "RuntimeDefault" | "Unconfined" => {
            if let Some(path) = local {
                let why = "can only be set when AppArmor type is Localhost";
                errors.invalid(&at.child("localhostProfile"), path, why);
            }
        }
        "" => {
            let why = "type is required when appArmorProfile is set";
            errors.required(&at.child("type"), why);
        }
        other => one_of(errors, &at.child("type"), other, &PROFILES),
    }
}

fn local_profile(errors: &mut Errors, path: &str, at: &Path) {
    if path.trim() != path {
        errors.invalid(at, path, "must not be padded with whitespace");
    } else if path.is_empty() {
        errors.required(at, "must be set when AppArmor type is Localhost");
    }
    if path.len() > PROFILE_PATH_MAX {
        errors.too_long(at, PROFILE_PATH_MAX);
    }
}

/// With a user namespace of its own, a pod may not share the host's other namespaces.
pub(super) fn host_users(errors: &mut Errors, spec: &Value, at: &Path) {
    if opt_flag(spec, "hostUsers") != Some(false) {
        return;
    }
    for (key, shown) in [
        ("hostNetwork", "hostNetwork"),
        ("hostPID", "HostPID"),
        ("hostIPC", "HostIPC"),
    ] {
        if flag(spec, key) {
            errors.forbidden(&at.child(shown), "when `pod.Spec.HostUsers` is false");
        }
    }
}
