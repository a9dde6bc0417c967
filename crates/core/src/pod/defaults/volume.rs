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

fn network_disks(volume: &mut Map<String, Value>) {
    if let Some(source) = fields(volume, "iscsi") {
        fill_text(source, "iscsiInterface", "default");
    }
    if let Some(source) = fields(volume, "rbd") {
        fill_text(source, "pool", "rbd");
        fill_text(source, "user", "admin");
        fill_text(source, "keyring", "/etc/ceph/keyring");
    }
    if let Some(source) = fields(volume, "azureDisk") {
        fill(source, "cachingMode", || json!("ReadWrite"));
        fill(source, "kind", || json!("Shared"));
        fill(source, "fsType", || json!("ext4"));
        fill(source, "readOnly", || json!(false));
    }
    if let Some(source) = fields(volume, "scaleIO") {
        fill_text(source, "storageMode", "ThinProvisioned");
        fill_text(source, "fsType", "xfs");
    }
}
