//! Validates `spec.os`, and the fields that the named operating system does not have.

use serde_json::Value;

use super::containers::each_container;
use crate::field::{ErrorList as _, Errors, Path};
use crate::kinds::check::forbid;
use crate::tree::{flag, list, text};

const NO_WINDOWS: &str = "cannot be set for a windows pod";
/// Fields of the pod's security context (`true`) and of the spec (`false`) that only Linux has, in the order
/// in which upstream reports them.
const LINUX_POD: [(&str, bool); 15] = [
    ("appArmorProfile", true),
    ("seLinuxOptions", true),
    ("hostUsers", false),
    ("hostPID", false),
    ("hostIPC", false),
    ("seccompProfile", true),
    ("fsGroup", true),
    ("fsGroupChangePolicy", true),
    ("sysctls", true),
    ("shareProcessNamespace", false),
    ("runAsUser", true),
    ("runAsGroup", true),
    ("supplementalGroups", true),
    ("supplementalGroupsPolicy", true),
    ("seLinuxChangePolicy", true),
];
const LINUX_CONTAINER: [&str; 10] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
];

pub(super) fn os(errors: &mut Errors, spec: &Value, at: &Path) {
    let Some(os) = spec.get("os") else { return };
    match text(os, "name") {
        "" => {
            errors.required(&at.child("os").child("name"), "cannot be empty");
        }
        "linux" => linux(errors, spec, at),
        "windows" => windows(errors, spec, at),
        other => errors.not_supported(&at.child("os"), other, &["linux", "windows"]),
    }
}

fn linux(errors: &mut Errors, spec: &Value, at: &Path) {
    let why = "windows options cannot be set for a linux pod";
    let mut check = |owner: &Value, at: &Path| {
        let context = owner.get("securityContext");
        if context.is_some_and(|context| context.get("windowsOptions").is_some()) {
            forbid(errors, &at.child("securityContext"), "windowsOptions", why);
        }
    };
    check(spec, at);
    each_container(spec, at, |container, at| check(container, at));
}

fn windows(errors: &mut Errors, spec: &Value, at: &Path) {
    let context = spec.get("securityContext").unwrap_or(&Value::Null);
    for (key, in_context) in LINUX_POD {
        let owner = if in_context { context } else { spec };
        let is_set = match key {
            "hostPID" | "hostIPC" => flag(owner, key),
            "sysctls" => !list(owner, key).is_empty(),
            _ => owner.get(key).is_some(),
        };
        if is_set && in_context {
            forbid(errors, &at.child("securityContext"), key, NO_WINDOWS);
        } else if is_set {
            forbid(errors, at, key, NO_WINDOWS);
        }
    }
    each_container(spec, at, |container, at| {
        let Some(context) = container.get("securityContext") else {
            return;
        };
        for key in LINUX_CONTAINER {
            if context.get(key).is_some() {
                forbid(errors, &at.child("securityContext"), key, NO_WINDOWS);
            }
        }
    });
}
