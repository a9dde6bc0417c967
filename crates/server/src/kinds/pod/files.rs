//! Validates the volume sources of files: secrets, config maps, the downward API and projected volumes.

use std::collections::BTreeSet;

use serde_json::Value;

use super::downward::{field_ref, resource_ref};
use crate::field::{ErrorList as _, Errors, Path};
use crate::kinds::check::{check_token_seconds, mode, require, require_text, unreserved_path};
use crate::kinds::selector;
use crate::tree::{int, list, number, opt_text, text};

const VOLUME_FIELDS: [&str; 5] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
];

/// Checks a secret as a volume.
pub(super) fn secret(errors: &mut Errors, source: &Value, at: &Path) {
    require_text(errors, source, at, "secretName");
    modes_and_items(errors, source, at);
}

/// Checks a config map as a volume.
pub(super) fn config_map(errors: &mut Errors, source: &Value, at: &Path) {
    require_text(errors, source, at, "name");
    modes_and_items(errors, source, at);
}

fn modes_and_items(errors: &mut Errors, source: &Value, at: &Path) {
    mode(errors, at, "defaultMode", int(source, "defaultMode"));
    for (i, item) in list(source, "items").iter().enumerate() {
        key_to_path(errors, item, &at.child("items").index(i));
    }
}

fn key_to_path(errors: &mut Errors, item: &Value, at: &Path) {
    require_text(errors, item, at, "key");
    require_text(errors, item, at, "path");
    unreserved_path(errors, &at.child("path"), text(item, "path"));
    mode(errors, at, "mode", int(item, "mode"));
}

/// Checks a downward API volume. As upstream, errors of its items have no index.
pub(super) fn downward(errors: &mut Errors, source: &Value, at: &Path) {
    mode(errors, at, "defaultMode", int(source, "defaultMode"));
    for item in list(source, "items") {
        downward_file(errors, item, at);
    }
}

fn downward_file(errors: &mut Errors, file: &Value, at: &Path) {
    require_text(errors, file, at, "path");
    unreserved_path(errors, &at.child("path"), text(file, "path"));
    match (file.get("fieldRef"), file.get("resourceFieldRef")) {
        (Some(field), resource) => {
            field_ref(errors, field, &at.child("fieldRef"), &VOLUME_FIELDS);
            if resource.is_some() {
                let why = "fieldRef and resourceFieldRef can not be specified simultaneously";
                errors.invalid(at, "resource", why);
            }
        }
        (None, Some(resource)) => {
            resource_ref(errors, resource, &at.child("resourceFieldRef"), true);
        }
        (None, None) => {
            errors.required(at, "one of fieldRef and resourceFieldRef is required");
        }
    }
    mode(errors, at, "mode", int(file, "mode"));
}

pub(super) fn projected(errors: &mut Errors, volume: &Value, at: &Path, any_token_path: bool) {
    mode(errors, at, "defaultMode", int(volume, "defaultMode"));
    let mut paths = Paths::default();
    for (i, source) in list(volume, "sources").iter().enumerate() {
        let source_at = at.child("sources").index(i);
        for kind in ["secret", "configMap"] {
            if let Some(projection) = source.get(kind) {
                keys(errors, projection, &source_at.child(kind), at, &mut paths);
            }
        }
        if let Some(projection) = source.get("downwardAPI") {
            let source_at = source_at.child("downwardAPI");
            for file in list(projection, "items") {
                downward_file(errors, file, &source_at);
                let path = text(file, "path");
                paths.take(errors, path, path, at);
            }
        }
        if let Some(projection) = source.get("serviceAccountToken") {
            let source_at = source_at.child("serviceAccountToken");
            token(errors, projection, &source_at, at, any_token_path);
        }
        if let Some(projection) = source.get("clusterTrustBundle") {
            trust_bundle(errors, projection, &source_at.child("clusterTrustBundle"));
            let path = text(projection, "path");
            paths.take(errors, path, path, at);
        }
        if source.as_object().is_some_and(|source| source.len() > 1) {
            let why = "may not specify more than 1 volume type per source";
            errors.forbidden(&source_at, why);
        }
    }
}

/// The paths that the sources of one projection take.
#[derive(Default)]
struct Paths<'a>(BTreeSet<&'a str>);

impl<'a> Paths<'a> {
    fn take(&mut self, errors: &mut Errors, path: &'a str, shown: &str, at: &Path) {
        if !path.is_empty() && !self.0.insert(path) {
            errors.invalid(at, shown, "conflicting duplicate paths");
        }
    }
}

fn keys<'a>(
    errors: &mut Errors,
    projection: &'a Value,
    at: &Path,
    volume: &Path,
    paths: &mut Paths<'a>,
) {
    require_text(errors, projection, at, "name");
    for (i, item) in list(projection, "items").iter().enumerate() {
        key_to_path(errors, item, &at.child("items").index(i));
        paths.take(errors, text(item, "path"), text(projection, "name"), volume);
    }
}

/// As upstream, errors of a token have the volume's path.
fn token(errors: &mut Errors, projection: &Value, at: &Path, volume: &Path, any_path: bool) {
    let seconds = number(projection, "expirationSeconds");
    check_token_seconds(errors, &at.child("expirationSeconds"), seconds);
    let path = text(projection, "path");
    if path.is_empty() {
        require(errors, volume, "path");
    } else if !any_path {
        unreserved_path(errors, &volume.child("path"), path);
    }
}

fn trust_bundle(errors: &mut Errors, projection: &Value, at: &Path) {
    let name = opt_text(projection, "name");
    let signer = opt_text(projection, "signerName");
    match (name, signer) {
        (Some(_), Some(_)) => {
            let why = "only one of name and signerName may be used";
            errors.invalid(at, projection, why);
        }
        (Some(name), None) => {
            if name.is_empty() {
                errors.required(&at.child("name"), "must be a valid object name");
            }
            if let Some(labels) = projection.get("labelSelector") {
                let why = "labelSelector must be unset if name is specified";
                errors.invalid(&at.child("labelSelector"), labels, why);
            }
        }
        (None, Some(signer)) => {
            if signer.is_empty() {
                errors.required(&at.child("signerName"), "must be a valid signer name");
            }
            if let Some(labels) = projection.get("labelSelector") {
                selector::collect(errors, labels, &at.child("labelSelector"), false);
            }
        }
        (None, None) => {
            errors.required(at, "either name or signerName must be specified");
        }
    }
    require_text(errors, projection, at, "path");
    unreserved_path(errors, &at.child("path"), text(projection, "path"));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(found: &Errors, expected: &[&str]) {
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn items_have_keys_paths_and_modes() {
        let mut errors = Errors::new();
        let source = json!({"secretName": "s", "defaultMode": 512, "items": [{"key": "a", "path": "../x"}, {"path": "y", "mode": -1}]});
        secret(&mut errors, &source, &Path::new("v"));
        check(
            &errors,
            &[
                "v.defaultMode: Invalid value: 512: must be a number between 0 and 0777 (octal), both inclusive",
                "v.items[0].path: Invalid value: \"../x\": must not contain '..'",
                "v.items[1].key: Required value",
                "v.items[1].mode: Invalid value: -1: must be a number between 0 and 0777 (octal), both inclusive",
            ],
        );
    }

    #[test]
    fn projections_do_not_collide() {
        let mut errors = Errors::new();
        let item = json!([{"key": "a", "path": "x"}]);
        let volume = json!({"sources": [
            {"secret": {"name": "s", "items": item}},
            {"configMap": {"name": "c", "items": item}},
            {"serviceAccountToken": {"path": "t", "expirationSeconds": 60}},
        ]});
        projected(&mut errors, &volume, &Path::new("v"), false);
        check(
            &errors,
            &[
                "v: Invalid value: \"c\": conflicting duplicate paths",
                "v.sources[2].serviceAccountToken.expirationSeconds: Invalid value: 60: may not specify a duration less than 10 minutes",
            ],
        );
    }

    #[test]
    fn downward_files_show_one_thing() {
        let mut errors = Errors::new();
        let source = json!({"items": [{"path": "p"}, {"path": "q", "fieldRef": {"apiVersion": "v1", "fieldPath": "spec.nodeName"}}]});
        downward(&mut errors, &source, &Path::new("v"));
        check(
            &errors,
            &[
                "v: Required value: one of fieldRef and resourceFieldRef is required",
                "v.fieldRef.fieldPath: Unsupported value: \"spec.nodeName\": supported values: \"metadata.annotations\", \"metadata.labels\", \"metadata.name\", \"metadata.namespace\", \"metadata.uid\"",
            ],
        );
    }
}
