//! Validates the volume sources of disks, network shares and claims. Most only have required fields.

use serde_json::Value;

use crate::field::{ErrorList as _, Errors, Path};
use crate::kinds::check::{
    descending_path, form, one_of, optional_choice, optional_form, require, require_text,
    required_form,
};
use crate::names;
use crate::tree::{flag, int, list, map, number, opt_text, text};

const DRIVER_LENGTH_MAX: usize = 63;
const PARTITION_MAX: i64 = 255;
const ISCSI_NAME_LENGTH_MAX: usize = 64;
const TENANT_LENGTH_MAX: usize = 64;
const HOST_PORT_PAIRS: &str = "must be a host:port pair or multiple pairs separated by commas";

/// The required fields of each source, in the order in which errors report them.
fn required_fields(key: &str) -> &'static [&'static str] {
    match key {
        "gcePersistentDisk" => &["pdName"],
        "awsElasticBlockStore" | "cinder" | "portworxVolume" => &["volumeID"],
        "persistentVolumeClaim" => &["claimName"],
        "nfs" => &["server", "path"],
        "glusterfs" => &["endpoints", "path"],
        "azureFile" => &["secretName", "shareName"],
        "vsphereVolume" => &["volumePath"],
        "photonPersistentDisk" => &["pdID"],
        "scaleIO" => &["gateway", "system", "volumeName"],
        "gitRepo" => &["repository"],
        "azureDisk" => &["diskName", "diskURI"],
        "flexVolume" => &["driver"],
        _ => &[],
    }
}

/// Checks a source; `parent` is the path of its volume.
pub(super) fn source(errors: &mut Errors, key: &'static str, source: &Value, parent: &Path) {
    // Upstream's path differs from the field's name.
    let shown = if key == "gcePersistentDisk" {
        "persistentDisk"
    } else {
        key
    };
    let at = &parent.child(shown);
    for field in required_fields(key) {
        require_text(errors, source, at, field);
    }
    match key {
        "gcePersistentDisk" | "awsElasticBlockStore" => partition(errors, source, at),
        "nfs" if !text(source, "path").starts_with('/') => {
            let why = "must be an absolute path";
            errors.invalid(&at.child("path"), text(source, "path"), why);
        }
        "gitRepo" => {
            let at = at.child("directory");
            descending_path(errors, &at, text(source, "directory"));
        }
        "rbd" | "cephfs" => monitors(errors, key, source, at),
        "cinder" => secret_name(errors, source, at),
        "iscsi" => iscsi(errors, source, at),
        "fc" => fibre_channel(errors, source, at),
        "flocker" => flocker(errors, source, at),
        "quobyte" => quobyte(errors, source, at),
        "flexVolume" => flex_options(errors, source, at),
        "azureDisk" => azure_disk(errors, source, at),
        "storageos" => storage_os(errors, source, at),
        "csi" => csi(errors, source, at),
        _ => {}
    }
}

fn partition(errors: &mut Errors, source: &Value, at: &Path) {
    let partition = number(source, "partition");
    if !(0..=PARTITION_MAX).contains(&partition) {
        let why = names::range_error(1, PARTITION_MAX);
        errors.invalid(&at.child("partition"), partition, &why);
    }
}

fn monitors(errors: &mut Errors, key: &str, source: &Value, at: &Path) {
    if list(source, "monitors").is_empty() {
        require(errors, at, "monitors");
    }
    if key == "rbd" {
        require_text(errors, source, at, "image");
    }
}

fn secret_name(errors: &mut Errors, source: &Value, at: &Path) {
    if let Some(reference) = source.get("secretRef") {
        require_text(errors, reference, &at.child("secretRef"), "name");
    }
}

fn lun(errors: &mut Errors, lun: i64, at: &Path) {
    if !(0..=255).contains(&lun) {
        errors.invalid(&at.child("lun"), lun, &names::range_error(0, 255));
    }
}

fn iscsi(errors: &mut Errors, source: &Value, at: &Path) {
    require_text(errors, source, at, "targetPortal");
    required_form(errors, source, at, "iqn", initiator_mistakes);
    lun(errors, number(source, "lun"), at);
    let authenticated = flag(source, "chapAuthDiscovery") || flag(source, "chapAuthSession");
    if authenticated && source.get("secretRef").is_none() {
        require(errors, at, "secretRef");
    }
    if let Some(name) = opt_text(source, "initiatorName") {
        form(errors, at, "initiatorname", name, initiator_mistakes(name));
    }
}

/// With an initiator name, volume and portal form a name of limited length.
pub(super) fn iscsi_name(errors: &mut Errors, source: &Value, volume: &str, at: &Path) {
    let length = volume.len() + 1 + text(source, "targetPortal").len();
    if source.get("initiatorName").is_some() && length > ISCSI_NAME_LENGTH_MAX {
        let why = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.";
        errors.invalid(&at.child("name"), volume, why);
    }
}

fn initiator_mistakes(name: &str) -> Vec<String> {
    let well_formed = match name.get(..3) {
        Some("iqn") => is_iqn(name),
        Some("eui") => has_word_after(name, 16),
        Some("naa") => has_word_after(name, 32),
        _ => return vec!["must be valid format starting with iqn, eui, or naa".to_owned()],
    };
    if well_formed {
        Vec::new()
    } else {
        vec!["must be valid format".to_owned()]
    }
}

/// `iqn.YYYY-MM.authority:name`
fn is_iqn(name: &str) -> bool {
    let Some((date, rest)) = name
        .strip_prefix("iqn.")
        .and_then(|rest| rest.split_once('.'))
    else {
        return false;
    };
    let digits =
        |text: &str, count| text.len() == count && text.bytes().all(|b| b.is_ascii_digit());
    let dated = date
        .split_once('-')
        .is_some_and(|(year, month)| digits(year, 4) && digits(month, 2));
    let Some((authority, unique)) = rest.split_once(':') else {
        return false;
    };
    let authority_ok = !authority.is_empty()
        && authority
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-.".contains(&b));
    let unique_ok = !unique.is_empty()
        && !unique.contains([',', ';', '*', '&', '$', '|'])
        && !unique.contains(char::is_whitespace);
    dated && authority_ok && unique_ok
}

fn has_word_after(name: &str, count: usize) -> bool {
    let word = name.as_bytes().get(4..).unwrap_or_default();
    word.len() == count && word.iter().all(u8::is_ascii_alphanumeric)
}

fn fibre_channel(errors: &mut Errors, source: &Value, at: &Path) {
    let targets = !list(source, "targetWWNs").is_empty();
    let ids = !list(source, "wwids").is_empty();
    if !targets && !ids {
        let why = "must specify either targetWWNs or wwids, but not both";
        errors.required(&at.child("targetWWNs"), why);
    }
    if targets && ids {
        let why = "targetWWNs and wwids can not be specified simultaneously";
        errors.invalid(&at.child("targetWWNs"), &source["targetWWNs"], why);
    }
    if targets {
        if let Some(number) = int(source, "lun") {
            lun(errors, number, at);
        } else {
            let why = "lun is required if targetWWNs is specified";
            errors.required(&at.child("lun"), why);
        }
    }
}

fn flocker(errors: &mut Errors, source: &Value, at: &Path) {
    let (name, uuid) = (text(source, "datasetName"), text(source, "datasetUUID"));
    if name.is_empty() && uuid.is_empty() {
        errors.required(at, "one of datasetName and datasetUUID is required");
    }
    if !name.is_empty() && !uuid.is_empty() {
        let why = "datasetName and datasetUUID can not be specified simultaneously";
        errors.invalid(at, "resource", why);
    }
    if name.contains('/') {
        let why = "must not contain '/'";
        errors.invalid(&at.child("datasetName"), name, why);
    }
}

fn quobyte(errors: &mut Errors, source: &Value, at: &Path) {
    let registry = text(source, "registry");
    if registry.is_empty() {
        errors.required(&at.child("registry"), HOST_PORT_PAIRS);
    } else if text(source, "tenant").len() > TENANT_LENGTH_MAX {
        let why = "must be a UUID and may not exceed a length of 64 characters";
        errors.required(&at.child("tenant"), why);
    } else {
        for _ in registry.split(',').filter(|pair| !pair.contains(':')) {
            let why = HOST_PORT_PAIRS;
            errors.invalid(&at.child("registry"), registry, why);
        }
    }
    require_text(errors, source, at, "volume");
}

fn flex_options(errors: &mut Errors, source: &Value, at: &Path) {
    for key in map(source, "options").keys() {
        let namespace = key
            .split_once('/')
            .map_or(key.as_str(), |(namespace, _)| namespace);
        let namespace = format!(".{}", namespace.to_lowercase());
        if namespace.ends_with(".kubernetes.io") || namespace.ends_with(".k8s.io") {
            let why = "kubernetes.io and k8s.io namespaces are reserved";
            errors.invalid(&at.child("options").key(key), key.as_str(), why);
        }
    }
}

fn azure_disk(errors: &mut Errors, source: &Value, at: &Path) {
    let modes = ["None", "ReadOnly", "ReadWrite"];
    optional_choice(errors, source, at, "cachingMode", &modes);
    let Some(kind) = opt_text(source, "kind") else {
        return;
    };
    let kinds = ["Dedicated", "Managed", "Shared"];
    one_of(errors, &at.child("kind"), kind, &kinds);
    let (prefix, shape) = if kind == "Managed" {
        (
            "/subscriptions/",
            "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}",
        )
    } else {
        (
            "https://",
            "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd",
        )
    };
    let uri = text(source, "diskURI");
    if !uri.starts_with(prefix) {
        errors.not_supported(&at.child("diskURI"), uri, &[shape]);
    }
}

fn storage_os(errors: &mut Errors, source: &Value, at: &Path) {
    required_form(errors, source, at, "volumeName", names::dns1123_label);
    optional_form(errors, source, at, "volumeNamespace", names::dns1123_label);
    secret_name(errors, source, at);
}

fn csi(errors: &mut Errors, source: &Value, at: &Path) {
    let driver = text(source, "driver");
    if driver.is_empty() {
        require(errors, at, "driver");
    }
    if driver.len() > DRIVER_LENGTH_MAX {
        errors.too_long(&at.child("driver"), DRIVER_LENGTH_MAX);
    }
    let mistakes = names::dns1123_subdomain(&driver.to_lowercase());
    form(errors, at, "driver", driver, mistakes);
    let Some(reference) = source.get("nodePublishSecretRef") else {
        return;
    };
    let name = text(reference, "name");
    if name.is_empty() {
        require(errors, &at.child("nodePublishSecretRef"), "name");
    } else {
        form(errors, at, "name", name, names::dns1123_subdomain(name));
    }
}
