//! The strategy of `PersistentVolume`.
//!
//! Volumes are stored; Kennel neither binds nor mounts them.

use serde_json::{Value, json};

use super::Strategy;
use super::amount::check_positive;
use super::check::{forbid, one_of, optional_form, require, require_text};
use super::meta::immutable;
use crate::field::{ErrorList as _, Errors, Path};
use crate::names;
use crate::tree::{at, copy_from_old, default_to, has, list, map, same, set, text, texts};

/// The ways volumes can be mounted, in the order upstream lists them.
pub(super) const ACCESS_MODES: [&str; 4] = [
    "ReadOnlyMany",
    "ReadWriteMany",
    "ReadWriteOnce",
    "ReadWriteOncePod",
];
const RECLAIM_POLICIES: [&str; 3] = ["Delete", "Recycle", "Retain"];
pub(super) const VOLUME_MODES: [&str; 2] = ["Block", "Filesystem"];
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

    fn validate_create(&self, object: &Value) -> Errors {
        let (spec, path) = (at(object, "spec"), Path::new("spec"));
        let mut errors = Errors::new();
        if list(spec, "accessModes").is_empty() {
            require(&mut errors, &path, "accessModes");
        }
        check_access_modes(&mut errors, spec, &path);
        check_capacity(&mut errors, spec, &path.child("capacity"));
        let policy = text(spec, "persistentVolumeReclaimPolicy");
        let at_policy = path.child("persistentVolumeReclaimPolicy");
        one_of(&mut errors, &at_policy, policy, &RECLAIM_POLICIES);
        check_sources(&mut errors, spec, &path);
        check_class_and_mode(&mut errors, spec, &path);
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Errors {
        let mut errors = self.validate_create(new);
        let moved = SOURCES
            .iter()
            .any(|source| !same(at(at(new, "spec"), source), at(at(old, "spec"), source)));
        if moved {
            let words = "spec.persistentvolumesource is immutable after creation";
            errors.forbidden(&Path::new("spec.persistentvolumesource"), words);
        }
        immutable(&mut errors, new, old, "spec.volumeMode");
        errors
    }
}

/// Validates the access modes of a volume or claim.
pub(super) fn check_access_modes(errors: &mut Errors, spec: &Value, path: &Path) {
    let path = path.child("accessModes");
    let modes: Vec<&str> = texts(spec, "accessModes").collect();
    for mode in &modes {
        one_of(errors, &path, mode, &ACCESS_MODES);
    }
    let alone = modes.iter().all(|mode| *mode == "ReadWriteOncePod");
    if modes.contains(&"ReadWriteOncePod") && !alone {
        errors.forbidden(
            &path,
            "may not use ReadWriteOncePod with other access modes",
        );
    }
}

/// Validates the storage class and the volume mode of a volume or claim.
pub(super) fn check_class_and_mode(errors: &mut Errors, spec: &Value, path: &Path) {
    let rule = names::dns1123_subdomain;
    optional_form(errors, spec, path, "storageClassName", rule);
    let mode = text(spec, "volumeMode");
    one_of(errors, &path.child("volumeMode"), mode, &VOLUME_MODES);
}

fn check_capacity(errors: &mut Errors, spec: &Value, path: &Path) {
    let capacity = map(spec, "capacity");
    if capacity.is_empty() {
        return errors.required(path, "");
    }
    if !capacity.contains_key("storage") || capacity.len() > 1 {
        errors.not_supported(path, capacity, &["storage"]);
    }
    for (name, value) in capacity {
        check_positive(errors, name, value, &path.key(name));
    }
}

fn check_sources(errors: &mut Errors, spec: &Value, path: &Path) {
    let mut given = SOURCES.into_iter().filter(|source| has(spec, source));
    let Some(first) = given.next() else {
        return errors.required(path, "must specify a volume type");
    };
    for source in given {
        forbid(
            errors,
            path,
            source,
            "may not specify more than 1 volume type",
        );
    }
    for (source, field) in [
        ("hostPath", "path"),
        ("local", "path"),
        ("nfs", "server"),
        ("nfs", "path"),
        ("csi", "driver"),
        ("csi", "volumeHandle"),
    ] {
        if first == source {
            require_text(errors, at(spec, source), &path.child(source), field);
        }
    }
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
