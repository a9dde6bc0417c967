//! Defaults of volumes.

use serde_json::{Map, Value, json};

use super::{
    downward_source, each, fields, file_mode, fill, fill_text, pull_policy, token_lifetime,
};

/// A volume without a source is an emptyDir.
pub(super) fn volume(volume: &mut Map<String, Value>) {
    if volume.keys().all(|key| key == "name") {
        volume.insert("emptyDir".to_owned(), json!({}));
    }
    for name in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = fields(volume, name) {
            file_mode(source);
        }
    }
    if let Some(source) = fields(volume, "downwardAPI") {
        each(source, "items", downward_source);
    }
    if let Some(source) = fields(volume, "projected") {
        each(source, "sources", projection);
    }
    if let Some(source) = fields(volume, "hostPath") {
        fill(source, "type", || json!(""));
    }
    if let Some(source) = fields(volume, "image") {
        let image = source.get("reference").and_then(Value::as_str);
        let policy = pull_policy(image.unwrap_or(""));
        fill_text(source, "pullPolicy", policy);
    }
    if let Some(source) = fields(volume, "ephemeral")
        && let Some(template) = fields(source, "volumeClaimTemplate")
    {
        claim_template(template);
    }
    network_disks(volume);
}

fn projection(source: &mut Map<String, Value>) {
    if let Some(downward) = fields(source, "downwardAPI") {
        each(downward, "items", downward_source);
    }
    if let Some(token) = fields(source, "serviceAccountToken") {
        token_lifetime(token);
    }
}

fn claim_template(template: &mut Map<String, Value>) {
    fill(template, "metadata", || json!({}));
    fill(template, "spec", || json!({}));
    if let Some(spec) = fields(template, "spec") {
        fill(spec, "volumeMode", || json!("Filesystem"));
        fill(spec, "resources", || json!({}));
    }
}

/// Texts that sources get if theirs are absent or empty: source, field, text.
const TEXTS: [(&str, &str, &str); 6] = [
    ("iscsi", "iscsiInterface", "default"),
    ("rbd", "pool", "rbd"),
    ("rbd", "user", "admin"),
    ("rbd", "keyring", "/etc/ceph/keyring"),
    ("scaleIO", "storageMode", "ThinProvisioned"),
    ("scaleIO", "fsType", "xfs"),
];

fn network_disks(volume: &mut Map<String, Value>) {
    for (source, field, text) in TEXTS {
        if let Some(source) = fields(volume, source) {
            fill_text(source, field, text);
        }
    }
    if let Some(source) = fields(volume, "azureDisk") {
        fill(source, "cachingMode", || json!("ReadWrite"));
        fill(source, "kind", || json!("Shared"));
        fill(source, "fsType", || json!("ext4"));
        fill(source, "readOnly", || json!(false));
    }
}
