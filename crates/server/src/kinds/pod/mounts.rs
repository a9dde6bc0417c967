//! Validates volume mounts and volume devices.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::field::{ErrorList as _, Errors, Path};
use crate::kinds::check::{descending_path, forbid, one_of, require};
use crate::tree::{flag, list, opt_text, text};

const PROPAGATIONS: [&str; 3] = ["Bidirectional", "HostToContainer", "None"];
const RECURSIVE_READ_ONLY: [&str; 3] = ["Disabled", "Enabled", "IfPossible"];

/// The well-formed volumes of a pod, by name.
pub(super) type Volumes<'a> = BTreeMap<&'a str, &'a Value>;

/// Checks `volumeMounts` and `volumeDevices` of one container.
pub(super) fn container(errors: &mut Errors, container: &Value, at: &Path, volumes: &Volumes<'_>) {
    let mounts = list(container, "volumeMounts");
    let devices = list(container, "volumeDevices");
    if !mounts.is_empty() {
        let at = at.child("volumeMounts");
        let mut seen = BTreeSet::new();
        for (i, mount) in mounts.iter().enumerate() {
            names_and_paths(errors, mount, &at.index(i), volumes, devices, &mut seen);
            sub_paths(errors, mount, &at, i);
            propagation(errors, mount, container, &at);
            recursive_read_only(errors, mount, &at);
        }
    }
    if !devices.is_empty() {
        let at = at.child("volumeDevices");
        let mut seen = Seen::default();
        for (i, device) in devices.iter().enumerate() {
            self::device(errors, device, &at.index(i), volumes, mounts, &mut seen);
        }
    }
}

fn wrong(errors: &mut Errors, at: &Path, name: &'static str, value: &str, why: &str) {
    errors.invalid(&at.child(name), value, why);
}

fn names_and_paths<'a>(
    errors: &mut Errors,
    mount: &'a Value,
    at: &Path,
    volumes: &Volumes<'_>,
    devices: &[Value],
    seen: &mut BTreeSet<&'a str>,
) {
    let (name, path) = (text(mount, "name"), text(mount, "mountPath"));
    if name.is_empty() {
        require(errors, at, "name");
    }
    if !volumes.contains_key(name) {
        errors.not_found(&at.child("name"), name);
    }
    if path.is_empty() {
        require(errors, at, "mountPath");
    }
    if !seen.insert(path) {
        wrong(errors, at, "mountPath", path, "must be unique");
    }
    if devices.iter().any(|device| text(device, "name") == name) {
        let why = "must not already exist in volumeDevices";
        wrong(errors, at, "name", name, why);
    }
    if devices
        .iter()
        .any(|device| text(device, "devicePath") == path)
    {
        let why = "must not already exist as a path in volumeDevices";
        wrong(errors, at, "mountPath", path, why);
    }
}

/// As upstream, errors of sub paths lack the index of the mount.
fn sub_paths(errors: &mut Errors, mount: &Value, list: &Path, i: usize) {
    let (path, expr) = (text(mount, "subPath"), text(mount, "subPathExpr"));
    if !path.is_empty() {
        descending_path(errors, &list.child("subPath"), path);
    }
    if expr.is_empty() {
        return;
    }
    if !path.is_empty() {
        let why = "subPathExpr and subPath are mutually exclusive";
        wrong(errors, &list.index(i), "subPathExpr", expr, why);
    }
    descending_path(errors, &list.child("subPathExpr"), expr);
}

fn propagation(errors: &mut Errors, mount: &Value, container: &Value, at: &Path) {
    let Some(mode) = opt_text(mount, "mountPropagation") else {
        return;
    };
    let at = at.child("mountPropagation");
    one_of(errors, &at, mode, &PROPAGATIONS);
    let privileged = container
        .get("securityContext")
        .is_some_and(|context| flag(context, "privileged"));
    if mode == "Bidirectional" && !privileged {
        let why = "Bidirectional mount propagation is available only to privileged containers";
        errors.forbidden(&at, why);
    }
}

fn recursive_read_only(errors: &mut Errors, mount: &Value, at: &Path) {
    let Some(mode) = opt_text(mount, "recursiveReadOnly") else {
        return;
    };
    if mode == "Disabled" {
        return;
    }
    if !RECURSIVE_READ_ONLY.contains(&mode) {
        let at = at.child("recursiveReadOnly");
        return one_of(errors, &at, mode, &RECURSIVE_READ_ONLY);
    }
    if !flag(mount, "readOnly") {
        let why = "may only be specified when readOnly is true";
        forbid(errors, at, "recursiveReadOnly", why);
    }
    if opt_text(mount, "mountPropagation").is_some_and(|mode| mode != "None") {
        let why = "may only be specified when mountPropagation is None or not specified";
        forbid(errors, at, "recursiveReadOnly", why);
    }
}

#[derive(Default)]
struct Seen<'a> {
    names: BTreeSet<&'a str>,
    paths: BTreeSet<&'a str>,
}

fn device<'a>(
    errors: &mut Errors,
    device: &'a Value,
    at: &Path,
    volumes: &Volumes<'_>,
    mounts: &[Value],
    seen: &mut Seen<'a>,
) {
    let (name, path) = (text(device, "name"), text(device, "devicePath"));
    if name.is_empty() {
        require(errors, at, "name");
    } else if !seen.names.insert(name) {
        wrong(errors, at, "name", name, "must be unique");
    }
    match volumes.get(name) {
        Some(volume) => {
            let is_claim = ["persistentVolumeClaim", "ephemeral"]
                .iter()
                .any(|source| volume.get(source).is_some());
            if !is_claim {
                let why = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                wrong(errors, at, "name", name, why);
            }
        }
        None => errors.not_found(&at.child("name"), name),
    }
    if path.is_empty() {
        require(errors, at, "devicePath");
    }
    if seen.paths.contains(path) {
        wrong(errors, at, "devicePath", path, "must be unique");
    }
    if path.split('/').any(|step| step == "..") {
        let why = "can not contain backsteps ('..')";
        wrong(errors, at, "devicePath", path, why);
    } else {
        seen.paths.insert(path);
    }
    if mounts.iter().any(|mount| text(mount, "name") == name) {
        let why = "must not already exist in volumeMounts";
        wrong(errors, at, "name", name, why);
    }
    if mounts.iter().any(|mount| text(mount, "mountPath") == path) {
        let why = "must not already exist as a path in volumeMounts";
        wrong(errors, at, "devicePath", path, why);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(mounts: &Value, expected: &[&str]) {
        let volume = json!({"name": "v", "emptyDir": {}});
        let volumes = Volumes::from([("v", &volume)]);
        let mut errors = Errors::new();
        container(
            &mut errors,
            &json!({"volumeMounts": mounts}),
            &Path::new("c"),
            &volumes,
        );
        let found: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{mounts}");
    }

    #[test]
    fn mounts_name_volumes_and_take_a_place_of_their_own() {
        check(&json!([{"name": "v", "mountPath": "/v"}]), &[]);
        check(
            &json!([{"name": "w", "mountPath": "/v"}]),
            &["c.volumeMounts[0].name: Not found: \"w\""],
        );
        check(
            &json!([{"name": "v"}]),
            &["c.volumeMounts[0].mountPath: Required value"],
        );
        check(
            &json!([{"name": "v", "mountPath": "/v"}, {"name": "v", "mountPath": "/v"}]),
            &["c.volumeMounts[1].mountPath: Invalid value: \"/v\": must be unique"],
        );
    }

    #[test]
    fn sub_paths_stay_inside_the_volume() {
        check(
            &json!([{"name": "v", "mountPath": "/v", "subPath": "../x"}]),
            &["c.volumeMounts.subPath: Invalid value: \"../x\": must not contain '..'"],
        );
        check(
            &json!([{"name": "v", "mountPath": "/v", "subPath": "x", "subPathExpr": "$(A)"}]),
            &[
                "c.volumeMounts[0].subPathExpr: Invalid value: \"$(A)\": subPathExpr and subPath are mutually exclusive",
            ],
        );
    }

    #[test]
    fn bidirectional_propagation_needs_privileges() {
        check(
            &json!([{"name": "v", "mountPath": "/v", "mountPropagation": "Bidirectional"}]),
            &[
                "c.volumeMounts.mountPropagation: Forbidden: Bidirectional mount propagation is available only to privileged containers",
            ],
        );
        check(
            &json!([{"name": "v", "mountPath": "/v", "mountPropagation": "Both"}]),
            &[
                "c.volumeMounts.mountPropagation: Unsupported value: \"Both\": supported values: \"Bidirectional\", \"HostToContainer\", \"None\"",
            ],
        );
    }

    #[test]
    fn devices_come_from_claims() {
        let volume = json!({"name": "v", "emptyDir": {}});
        let volumes = Volumes::from([("v", &volume)]);
        let mut errors = Errors::new();
        let devices = json!({"volumeDevices": [{"name": "v", "devicePath": "/dev/x"}]});
        container(&mut errors, &devices, &Path::new("c"), &volumes);
        assert_eq!(
            errors[0].to_string(),
            "c.volumeDevices[0].name: Invalid value: \"v\": can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
        );
    }
}
