//! Validates volumes: each has a unique name and exactly one source.

use kennel_core::quantity::Quantity;
use serde_json::Value;

use super::mounts::Volumes;
use super::{claim_template, disks, files};
use crate::field::{ErrorList as _, Errors, Path};
use crate::kinds::check::{choice, form, no_backsteps, optional_choice, require, required_form};
use crate::names;
use crate::tree::{list, text};

const HOST_PATH_TYPES: [&str; 8] = [
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
];
pub(super) const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];
/// Every source in upstream's order, with the name that upstream reports a second source under; two of
/// these differ from the field's name.
static SOURCES: [(&str, &str); 30] = [
    ("emptyDir", "emptyDir"),
    ("hostPath", "hostPath"),
    ("gitRepo", "gitRepo"),
    ("gcePersistentDisk", "gcePersistentDisk"),
    ("awsElasticBlockStore", "awsElasticBlockStore"),
    ("secret", "secret"),
    ("nfs", "nfs"),
    ("iscsi", "iscsi"),
    ("glusterfs", "glusterfs"),
    ("flocker", "flocker"),
    ("persistentVolumeClaim", "persistentVolumeClaim"),
    ("rbd", "rbd"),
    ("cinder", "cinder"),
    ("cephfs", "cephFS"),
    ("quobyte", "quobyte"),
    ("downwardAPI", "downwarAPI"),
    ("fc", "fc"),
    ("flexVolume", "flexVolume"),
    ("configMap", "configMap"),
    ("azureFile", "azureFile"),
    ("vsphereVolume", "vsphereVolume"),
    ("photonPersistentDisk", "photonPersistentDisk"),
    ("portworxVolume", "portworxVolume"),
    ("azureDisk", "azureDisk"),
    ("storageos", "storageos"),
    ("projected", "projected"),
    ("scaleIO", "scaleIO"),
    ("csi", "csi"),
    ("ephemeral", "ephemeral"),
    ("image", "image"),
];

/// What the check of volumes needs to know about the pod.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owner<'a> {
    /// A pod, not the template of one.
    pub is_pod: bool,
    /// The pod's name, empty for a template.
    pub pod_name: &'a str,
    /// Accept any token path, because the stored object has an invalid one.
    pub any_token_path: bool,
}

/// Checks all volumes and returns the well-formed ones.
pub(super) fn all<'a>(
    errors: &mut Errors,
    spec: &'a Value,
    at: &Path,
    owner: Owner<'_>,
) -> Volumes<'a> {
    let mut good = Volumes::new();
    let volumes = list(spec, "volumes");
    if volumes.is_empty() {
        return good;
    }
    let at = at.child("volumes");
    let created = created_claims(volumes, owner.pod_name);
    for (i, volume) in volumes.iter().enumerate() {
        let at = at.index(i);
        let before = errors.len();
        let name = text(volume, "name");
        source(errors, volume, &at, owner);
        required_form(errors, volume, &at, "name", names::dns1123_label);
        if good.contains_key(name) {
            errors.duplicate(&at.child("name"), name);
        }
        if errors.len() == before {
            good.insert(name, volume);
        }
        let claim = volume.get("persistentVolumeClaim");
        let claim = claim.map_or("", |claim| text(claim, "claimName"));
        if created.iter().any(|created| created == claim) {
            let at = at.child("persistentVolumeClaim").child("claimName");
            let why = "must not reference a PVC that gets created for an ephemeral volume";
            errors.invalid(&at, claim, why);
        }
    }
    good
}

fn created_claims(volumes: &[Value], pod_name: &str) -> Vec<String> {
    let ephemeral = volumes.iter().filter(|v| v.get("ephemeral").is_some());
    if pod_name.is_empty() {
        return Vec::new();
    }
    ephemeral
        .map(|volume| format!("{pod_name}-{}", text(volume, "name")))
        .collect()
}

fn source(errors: &mut Errors, volume: &Value, at: &Path, owner: Owner<'_>) {
    let given = sources(volume);
    for (i, ((key, second), source)) in given.iter().copied().enumerate() {
        if i > 0 {
            let why = "may not specify more than 1 volume type";
            errors.forbidden(&at.child(*second), why);
        } else {
            one_source(errors, key, source, volume, at, owner);
        }
        if *key == "iscsi" {
            disks::iscsi_name(errors, source, text(volume, "name"), at);
        }
    }
    if given.is_empty() {
        errors.required(at, "must specify a volume type");
    }
}

/// The sources of a volume, in upstream's order. A volume has few members, so looking these up in the table
/// is faster than the reverse.
fn sources(volume: &Value) -> Vec<(&'static (&'static str, &'static str), &Value)> {
    let members = volume.as_object().into_iter().flatten();
    let mut found: Vec<(usize, &Value)> = members
        .filter_map(|(name, value)| Some((SOURCES.iter().position(|(key, _)| key == name)?, value)))
        .collect();
    found.sort_unstable_by_key(|(order, _)| *order);
    let with_names = |(order, value): (usize, _)| (&SOURCES[order], value);
    found.into_iter().map(with_names).collect()
}

fn one_source(
    errors: &mut Errors,
    key: &'static str,
    source: &Value,
    volume: &Value,
    parent: &Path,
    owner: Owner<'_>,
) {
    let at = parent.child(key);
    match key {
        "emptyDir" => empty_dir(errors, source, &at),
        "hostPath" => host_path(errors, source, &at),
        "secret" => files::secret(errors, source, &at),
        "configMap" => files::config_map(errors, source, &at),
        "downwardAPI" => files::downward(errors, source, &at),
        "projected" => files::projected(errors, source, &at, owner.any_token_path),
        "image" => image(errors, source, &at, owner),
        "ephemeral" => {
            claim_template::ephemeral(errors, source, &at);
            claim_name(errors, volume, parent, owner);
        }
        other => disks::source(errors, other, source, parent),
    }
}

fn empty_dir(errors: &mut Errors, source: &Value, at: &Path) {
    let limit = source.get("sizeLimit").map(Quantity::read);
    if limit.is_some_and(|limit| limit.sign() < 0) {
        let why = "SizeLimit field must be a valid resource quantity";
        errors.forbidden(&at.child("sizeLimit"), why);
    }
}

fn host_path(errors: &mut Errors, source: &Value, at: &Path) {
    let path = text(source, "path");
    if path.is_empty() {
        return require(errors, at, "path");
    }
    no_backsteps(errors, &at.child("path"), path);
    optional_choice(errors, source, at, "type", &HOST_PATH_TYPES);
}

fn image(errors: &mut Errors, source: &Value, at: &Path, owner: Owner<'_>) {
    if owner.is_pod && text(source, "reference").is_empty() {
        require(errors, at, "reference");
    }
    choice(errors, source, at, "pullPolicy", &PULL_POLICIES);
}

/// The claim of an ephemeral volume is named after pod and volume; that must be a valid name.
fn claim_name(errors: &mut Errors, volume: &Value, at: &Path, owner: Owner<'_>) {
    let name = text(volume, "name");
    if owner.pod_name.is_empty() || name.is_empty() {
        return;
    }
    let claim = format!("{}-{name}", owner.pod_name);
    for mistake in names::dns1123_subdomain(&claim) {
        let why = format!("PVC name \"{claim}\": {mistake}");
        form(errors, at, "name", name, vec![why]);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const OWNER: Owner<'_> = Owner {
        is_pod: true,
        pod_name: "p",
        any_token_path: false,
    };

    fn check(volume: &Value, expected: &[&str]) {
        let mut errors = Errors::new();
        let spec = json!({"volumes": [volume]});
        all(&mut errors, &spec, &Path::new("spec"), OWNER);
        let found: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{spec}");
    }

    #[test]
    fn a_volume_has_one_source() {
        check(&json!({"name": "v", "emptyDir": {}}), &[]);
        check(
            &json!({"name": "v", "emptyDir": {}, "hostPath": {"path": "/x"}}),
            &["spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type"],
        );
        check(
            &json!({"name": "v"}),
            &["spec.volumes[0]: Required value: must specify a volume type"],
        );
    }

    #[test]
    fn host_paths_are_clean_and_typed() {
        check(
            &json!({"name": "v", "hostPath": {"path": "/a/../b", "type": ""}}),
            &["spec.volumes[0].hostPath.path: Invalid value: \"/a/../b\": must not contain '..'"],
        );
        check(
            &json!({"name": "v", "hostPath": {"path": "/a", "type": "Dir"}}),
            &[
                "spec.volumes[0].hostPath.type: Unsupported value: \"Dir\": supported values: \"\", \"BlockDevice\", \"CharDevice\", \"Directory\", \"DirectoryOrCreate\", \"File\", \"FileOrCreate\", \"Socket\"",
            ],
        );
    }

    #[test]
    fn required_fields_of_sources_are_asked_for() {
        check(
            &json!({"name": "v", "nfs": {"server": "s", "path": "x"}}),
            &["spec.volumes[0].nfs.path: Invalid value: \"x\": must be an absolute path"],
        );
        check(
            &json!({"name": "v", "persistentVolumeClaim": {}}),
            &["spec.volumes[0].persistentVolumeClaim.claimName: Required value"],
        );
        check(
            &json!({"name": "v", "csi": {"driver": ""}}).clone(),
            &[
                "spec.volumes[0].csi.driver: Required value",
                "spec.volumes[0].csi.driver: Invalid value: \"\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
            ],
        );
        check(
            &json!({"name": "v", "gcePersistentDisk": {}}),
            &["spec.volumes[0].persistentDisk.pdName: Required value"],
        );
    }
}
