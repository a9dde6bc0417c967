//! The printers of volumes, claims, storage classes and CSI objects.

use kennel_types::Timestamp;
use serde_json::{Value, json};

use super::column::{AGE, Column, NAME, boolean, integer, text as column, wide};
use super::duration::since;
use super::format::{joined, members, or_none};
use crate::tree::{at, flag, is_deleting, list, map, opt_flag, text, text_or, texts, time};

const UNSET: &str = "<unset>";

const ATTRIBUTES: Column = column("VolumeAttributesClass", "The class of its attributes.");
const CAPACITY: Column = column("Capacity", "Its size.");
const ACCESS_MODES: Column = column("Access Modes", "How it may be mounted.");
const STATUS: Column = column("Status", "Where it is in its life.");
const CLASS: Column = column("StorageClass", "The class it belongs to.");
const VOLUME_MODE: Column = wide(
    "VolumeMode",
    "Whether it is a file system or a block device.",
);

pub(super) const VOLUME: &[Column] = &[
    NAME,
    CAPACITY,
    ACCESS_MODES,
    column("Reclaim Policy", "What becomes of it when released."),
    STATUS,
    column("Claim", "The claim it is bound to."),
    CLASS,
    ATTRIBUTES,
    column("Reason", "Why it is in that state."),
    AGE,
    VOLUME_MODE,
];

pub(super) const CLAIM: &[Column] = &[
    NAME,
    STATUS,
    column("Volume", "The volume it is bound to."),
    CAPACITY,
    ACCESS_MODES,
    CLASS,
    ATTRIBUTES,
    AGE,
    VOLUME_MODE,
];

pub(super) const STORAGE_CLASS: &[Column] = &[
    NAME,
    column("Provisioner", "The provisioner of its volumes."),
    column("ReclaimPolicy", "What happens to a released volume."),
    column("VolumeBindingMode", "When a volume is made and bound."),
    boolean("AllowVolumeExpansion", "Whether its volumes may grow."),
    AGE,
];

pub(super) const CSI_NODE: &[Column] = &[
    NAME,
    integer("Drivers", "How many drivers run on the node."),
    AGE,
];

pub(super) const CSI_DRIVER: &[Column] = &[
    NAME,
    boolean(
        "AttachRequired",
        "Whether volumes are attached before mounting.",
    ),
    boolean(
        "PodInfoOnMount",
        "Whether the driver is told about the pod.",
    ),
    boolean(
        "StorageCapacity",
        "Whether the driver reports its capacity.",
    ),
    column("TokenRequests", "The audiences of the tokens it asks for."),
    boolean(
        "RequiresRepublish",
        "Whether volumes are published again and again.",
    ),
    column("Modes", "The kinds of volumes it serves."),
    AGE,
];

pub(super) fn volume(volume: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        json!(text(volume, "metadata.name")),
        json!(text_or(volume, "spec.capacity.storage", "0")),
        json!(access_modes(volume, "spec.accessModes")),
        json!(text(volume, "spec.persistentVolumeReclaimPolicy")),
        json!(phase(volume)),
        json!(claim_reference(volume)),
        json!(class(volume)),
        json!(text_or(volume, "spec.volumeAttributesClassName", UNSET)),
        json!(text(volume, "status.reason")),
        json!(since(time(volume, "metadata.creationTimestamp"), now)),
        json!(text_or(volume, "spec.volumeMode", UNSET)),
    ]
}

pub(super) fn claim(claim: &Value, now: Timestamp) -> Vec<Value> {
    let volume = text(claim, "spec.volumeName");
    let (capacity, modes) = if volume.is_empty() {
        ("", String::new())
    } else {
        let capacity = text_or(claim, "status.capacity.storage", "0");
        (capacity, access_modes(claim, "status.accessModes"))
    };
    vec![
        json!(text(claim, "metadata.name")),
        json!(phase(claim)),
        json!(volume),
        json!(capacity),
        json!(modes),
        json!(class(claim)),
        json!(text_or(claim, "spec.volumeAttributesClassName", UNSET)),
        json!(since(time(claim, "metadata.creationTimestamp"), now)),
        json!(text_or(claim, "spec.volumeMode", UNSET)),
    ]
}

fn phase(object: &Value) -> &str {
    if is_deleting(object) {
        return "Terminating";
    }
    text(object, "status.phase")
}

fn claim_reference(volume: &Value) -> String {
    match at(volume, "spec.claimRef") {
        claim @ Value::Object(_) => format!("{}/{}", text(claim, "namespace"), text(claim, "name")),
        _ => String::new(),
    }
}

/// From before the field existed; it wins over the field.
const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

fn class(object: &Value) -> &str {
    let annotation = &object["metadata"]["annotations"][CLASS_ANNOTATION];
    let class = annotation.as_str();
    class.unwrap_or_else(|| text(object, "spec.storageClassName"))
}

/// Access modes in their short forms, in a fixed order, each once.
fn access_modes(object: &Value, path: &str) -> String {
    const SHORT: [(&str, &str); 4] = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let modes = SHORT
        .iter()
        .filter(|(long, _)| texts(object, path).any(|mode| mode == *long));
    modes.map(|(_, short)| *short).collect::<Vec<_>>().join(",")
}

/// Marks a default class.
const IS_DEFAULT: &str = "storageclass.kubernetes.io/is-default-class";

pub(super) fn storage_class(class: &Value, now: Timestamp) -> Vec<Value> {
    let is_default = map(class, "metadata.annotations").get(IS_DEFAULT) == Some(&json!("true"));
    let mark = if is_default { " (default)" } else { "" };
    vec![
        json!(format!("{}{mark}", text(class, "metadata.name"))),
        json!(text(class, "provisioner")),
        json!(text_or(class, "reclaimPolicy", "Delete")),
        json!(text_or(class, "volumeBindingMode", "Immediate")),
        json!(flag(class, "allowVolumeExpansion")),
        json!(since(time(class, "metadata.creationTimestamp"), now)),
    ]
}

pub(super) fn csi_node(node: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        json!(text(node, "metadata.name")),
        json!(list(node, "spec.drivers").len()),
        json!(since(time(node, "metadata.creationTimestamp"), now)),
    ]
}

pub(super) fn csi_driver(driver: &Value, now: Timestamp) -> Vec<Value> {
    let audiences = match at(driver, "spec.tokenRequests") {
        Value::Array(_) => members(driver, "spec.tokenRequests", "audience"),
        _ => UNSET.to_owned(),
    };
    vec![
        json!(text(driver, "metadata.name")),
        json!(opt_flag(driver, "spec.attachRequired").unwrap_or(true)),
        json!(flag(driver, "spec.podInfoOnMount")),
        json!(flag(driver, "spec.storageCapacity")),
        json!(audiences),
        json!(flag(driver, "spec.requiresRepublish")),
        json!(or_none(joined(driver, "spec.volumeLifecycleModes"))),
        json!(since(time(driver, "metadata.creationTimestamp"), now)),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use serde_json::json;

    #[test]
    fn storage_classes() {
        let default = json!({"storageclass.kubernetes.io/is-default-class": "true"});
        check(
            "storageclasses",
            json!({"metadata": {"name": "fast", "annotations": default}, "provisioner": "csi.example.com",
                "reclaimPolicy": "Retain", "allowVolumeExpansion": true}),
            json!([
                "fast (default)",
                "csi.example.com",
                "Retain",
                "Immediate",
                true,
                "<unknown>"
            ]),
        );
    }

    #[test]
    fn volumes() {
        check(
            "persistentvolumes",
            json!({"metadata": {"name": "v", "creationTimestamp": "2026-01-01T00:00:00Z"}, "spec": {
                "capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteMany", "ReadWriteOnce", "ReadWriteMany"],
                "persistentVolumeReclaimPolicy": "Retain", "claimRef": {"namespace": "ns", "name": "c"},
                "storageClassName": "slow", "volumeMode": "Filesystem",
            }, "status": {"phase": "Bound"}}),
            json!([
                "v",
                "5Gi",
                "RWO,RWX",
                "Retain",
                "Bound",
                "ns/c",
                "slow",
                "<unset>",
                "",
                "60m",
                "Filesystem"
            ]),
        );
        check(
            "persistentvolumes",
            json!({"metadata": {"name": "v", "deletionTimestamp": "2026-01-01T00:00:00Z",
                   "annotations": {"volume.beta.kubernetes.io/storage-class": "old"}},
                   "spec": {"storageClassName": "new"}, "status": {"phase": "Failed", "reason": "boom"}}),
            json!([
                "v",
                "0",
                "",
                "",
                "Terminating",
                "",
                "old",
                "<unset>",
                "boom",
                "<unknown>",
                "<unset>"
            ]),
        );
    }

    #[test]
    fn claims_show_capacity_only_when_bound() {
        check(
            "persistentvolumeclaims",
            json!({"metadata": {"name": "c"}, "spec": {"resources": {"requests": {"storage": "1Gi"}},
                   "accessModes": ["ReadWriteOncePod"]}, "status": {"phase": "Pending"}}),
            json!([
                "c",
                "Pending",
                "",
                "",
                "",
                "",
                "<unset>",
                "<unknown>",
                "<unset>"
            ]),
        );
        check(
            "persistentvolumeclaims",
            json!({"metadata": {"name": "c"}, "spec": {"volumeName": "v", "volumeMode": "Block",
                   "volumeAttributesClassName": "gold"},
                   "status": {"phase": "Bound", "capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteOncePod"]}}),
            json!([
                "c",
                "Bound",
                "v",
                "2Gi",
                "RWOP",
                "",
                "gold",
                "<unknown>",
                "Block"
            ]),
        );
    }

    #[test]
    fn csi() {
        check(
            "csinodes",
            json!({"metadata": {"name": "n"}, "spec": {"drivers": [{"name": "a"}, {"name": "b"}]}}),
            json!(["n", 2, "<unknown>"]),
        );
        check(
            "csidrivers",
            json!({"metadata": {"name": "d"}, "spec": {}}),
            json!([
                "d",
                true,
                false,
                false,
                "<unset>",
                false,
                "<none>",
                "<unknown>"
            ]),
        );
        check(
            "csidrivers",
            json!({"metadata": {"name": "d"}, "spec": {"attachRequired": false, "podInfoOnMount": true,
                   "storageCapacity": true, "requiresRepublish": true, "tokenRequests": [{"audience": "x"}, {"audience": "y"}],
                   "volumeLifecycleModes": ["Persistent", "Ephemeral"]}}),
            json!([
                "d",
                false,
                true,
                true,
                "x,y",
                true,
                "Persistent,Ephemeral",
                "<unknown>"
            ]),
        );
    }
}
