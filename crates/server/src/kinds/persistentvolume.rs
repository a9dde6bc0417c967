//! The strategy of `PersistentVolume`.
//!
//! Volumes are stored; Kennel neither binds nor mounts them.

use serde_json::{Value, json};

use super::Strategy;
use super::amount::{positive_error, resource_errors};
use super::meta::{immutable, invalid_each};
use crate::field::{FieldError, Path};
use crate::names;
use crate::tree::{
    at, copy_from_old, default_to, has, is_empty, list, map, same, set, text, texts,
};

/// The ways volumes can be mounted, in the order upstream lists them.
const ACCESS_MODES: [&str; 4] = [
    "ReadOnlyMany",
    "ReadWriteMany",
    "ReadWriteOnce",
    "ReadWriteOncePod",
];
const RECLAIM_POLICIES: [&str; 3] = ["Delete", "Recycle", "Retain"];
const VOLUME_MODES: [&str; 2] = ["Block", "Filesystem"];
/// The volume sources; exactly one must be set.
const SOURCES: [&str; 22] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
];

#[derive(Debug)]
pub struct PersistentVolume;

impl Strategy for PersistentVolume {
    fn default(&self, object: &mut Value) {
        default_to(object, "spec.persistentVolumeReclaimPolicy", "Retain");
        default_to(object, "spec.volumeMode", "Filesystem");
        default_to(object, "status.phase", "Pending");
        if has(object, "spec.hostPath") && !has(object, "spec.hostPath.type") {
            set(object, "spec.hostPath.type", json!(""));
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        set(object, "status", json!({"phase": "Pending"}));
    }

    fn prepare_update(&self, new: &mut Value, old: &Value) {
        copy_from_old(new, old, "status");
    }

    fn prepare_status_update(&self, new: &mut Value, old: &Value) {
        copy_from_old(new, old, "spec");
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let spec = Path::new("spec");
        let mut errors = Vec::new();
        if list(object, "spec.accessModes").is_empty() {
            errors.push(FieldError::required(&spec.child("accessModes"), ""));
        }
        errors.extend(access_mode_errors(object, &spec));
        errors.extend(capacity_errors(object, &spec.child("capacity")));
        let policy = text(object, "spec.persistentVolumeReclaimPolicy");
        if !RECLAIM_POLICIES.contains(&policy) {
            let path = spec.child("persistentVolumeReclaimPolicy");
            let shown = json!(policy);
            errors.push(FieldError::not_supported(&path, &shown, &RECLAIM_POLICIES));
        }
        errors.extend(source_errors(object, &spec));
        errors.extend(class_errors(object, &spec));
        errors.extend(volume_mode_error(object, &spec));
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = self.validate_create(new);
        let spec = Path::new("spec");
        let moved = SOURCES
            .iter()
            .any(|source| !same(at(at(new, "spec"), source), at(at(old, "spec"), source)));
        if moved {
            let words = "spec.persistentvolumesource is immutable after creation";
            let path = spec.child("persistentvolumesource");
            errors.push(FieldError::forbidden(&path, words));
        }
        let path = spec.child("volumeMode");
        errors.extend(immutable(new, old, "spec.volumeMode", &path));
        errors
    }
}

/// Validates the access modes of a volume or claim.
pub(super) fn access_mode_errors(object: &Value, spec: &Path) -> Vec<FieldError> {
    let path = spec.child("accessModes");
    let modes: Vec<&str> = texts(object, "spec.accessModes").collect();
    let mut errors = Vec::new();
    for mode in &modes {
        if !ACCESS_MODES.contains(mode) {
            errors.push(FieldError::not_supported(
                &path,
                &json!(mode),
                &ACCESS_MODES,
            ));
        }
    }
    let alone = modes.iter().all(|mode| *mode == "ReadWriteOncePod");
    if modes.contains(&"ReadWriteOncePod") && !alone {
        let words = "may not use ReadWriteOncePod with other access modes";
        errors.push(FieldError::forbidden(&path, words));
    }
    errors
}

/// Validates the storage class of a volume or claim.
pub(super) fn class_errors(object: &Value, spec: &Path) -> Vec<FieldError> {
    let class = text(object, "spec.storageClassName");
    if class.is_empty() {
        return Vec::new();
    }
    let path = spec.child("storageClassName");
    invalid_each(&path, &json!(class), names::dns1123_subdomain(class))
}

/// Validates the mode of a volume or claim.
pub(super) fn volume_mode_error(object: &Value, spec: &Path) -> Option<FieldError> {
    let mode = text(object, "spec.volumeMode");
    let path = spec.child("volumeMode");
    (!VOLUME_MODES.contains(&mode))
        .then(|| FieldError::not_supported(&path, &json!(mode), &VOLUME_MODES))
}

fn capacity_errors(object: &Value, path: &Path) -> Vec<FieldError> {
    let capacity = map(object, "spec.capacity");
    if capacity.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let mut errors = Vec::new();
    if !capacity.contains_key("storage") || capacity.len() > 1 {
        let shown = at(object, "spec.capacity");
        errors.push(FieldError::not_supported(path, shown, &["storage"]));
    }
    for (name, value) in capacity {
        let path = path.key(name);
        errors.extend(resource_errors(name, value, &path));
        errors.extend(positive_error(value, &path));
    }
    errors
}

fn source_errors(object: &Value, spec: &Path) -> Vec<FieldError> {
    let given: Vec<&'static str> = SOURCES
        .into_iter()
        .filter(|source| has(at(object, "spec"), source))
        .collect();
    if given.is_empty() {
        return vec![FieldError::required(spec, "must specify a volume type")];
    }
    let mut errors = Vec::new();
    for source in &given[1..] {
        let words = "may not specify more than 1 volume type";
        errors.push(FieldError::forbidden(&spec.child(*source), words));
    }
    for (source, field) in [
        ("hostPath", "path"),
        ("local", "path"),
        ("nfs", "server"),
        ("nfs", "path"),
        ("csi", "driver"),
        ("csi", "volumeHandle"),
    ] {
        if given[0] == source && is_empty(at(at(at(object, "spec"), source), field)) {
            errors.push(FieldError::required(&spec.child(source).child(field), ""));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check_create, check_update, created};
    use super::*;

    fn volume(extra: &Value) -> Value {
        let mut object = json!({"spec": {"accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/data"}}});
        for (key, value) in extra.as_object().into_iter().flatten() {
            object["spec"][key] = value.clone();
        }
        object
    }

    #[test]
    fn defaults() {
        let object = created(&PersistentVolume, &volume(&json!({})));
        assert_eq!(object["spec"]["persistentVolumeReclaimPolicy"], "Retain");
        assert_eq!(object["spec"]["volumeMode"], "Filesystem");
        assert_eq!(object["status"], json!({"phase": "Pending"}));
    }

    #[test]
    fn volumes_are_judged() {
        check_create(&PersistentVolume, &volume(&json!({})), &[]);
        check_create(
            &PersistentVolume,
            &json!({"spec": {}}),
            &[
                "spec.accessModes: Required value",
                "spec.capacity: Required value",
                "spec: Required value: must specify a volume type",
            ],
        );
        check_create(
            &PersistentVolume,
            &volume(
                &json!({"accessModes": ["Odd"], "capacity": {"storage": "0"},
                "hostPath": {"path": ""}, "nfs": {"server": "s", "path": "/"}}),
            ),
            &[
                "spec.accessModes: Unsupported value: \"Odd\": supported values: \
                 \"ReadOnlyMany\", \"ReadWriteMany\", \"ReadWriteOnce\", \"ReadWriteOncePod\"",
                "spec.capacity[storage]: Invalid value: \"0\": must be greater than zero",
                "spec.nfs: Forbidden: may not specify more than 1 volume type",
                "spec.hostPath.path: Required value",
            ],
        );
    }

    #[test]
    fn the_source_stays() {
        check_update(
            &PersistentVolume,
            &volume(&json!({"hostPath": {"path": "/other"}, "volumeMode": "Block"})),
            &volume(&json!({})),
            &[
                "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable \
                 after creation",
                "spec.volumeMode: Invalid value: \"Block\": field is immutable",
            ],
        );
    }
}
