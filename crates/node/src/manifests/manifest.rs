//! Makes a static pod of a manifest: parses it, sets its name and uid, applies the API's defaults, and validates it.

use std::path::Path;

use kennel_core::pod::defaults;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::validate::{self, InvalidPod};
use super::{HASH, SEEN, SOURCE};
use crate::pods::pod::PodError;
use crate::pods::{Origin, Pod};

/// Why a manifest cannot be used, in upstream's words.
#[derive(Debug, thiserror::Error)]
pub(super) enum ManifestError {
    #[error("couldn't parse as pod({0}), please check manifest file")]
    Parse(ParseError),
    #[error("invalid pod: {0}")]
    Invalid(InvalidPod),
    #[error("invalid pod: {0}")]
    Pod(PodError),
    /// The kind of the object.
    #[error("static pods may not reference {0}")]
    Reference(&'static str),
}

#[derive(Debug, thiserror::Error)]
pub(super) enum ParseError {
    #[error(transparent)]
    Utf8(#[from] std::str::Utf8Error),
    #[error(transparent)]
    Yaml(#[from] serde_saphyr::Error),
    #[error("it is not a v1 Pod: apiVersion {api_version}, kind {kind}")]
    Kind { api_version: Value, kind: Value },
    #[error(transparent)]
    Field(#[from] serde_json::Error),
    #[error("name is needed for the pod")]
    NoName,
}

pub(super) fn read(
    text: &[u8],
    path: &Path,
    node_name: &str,
    now: &str,
) -> Result<Pod, ManifestError> {
    let mut object = parse(text).map_err(ManifestError::Parse)?;
    let hash = hash(&object, path, node_name);
    set_fields(&mut object, &hash, node_name, now);
    validate::check(&object).map_err(ManifestError::Invalid)?;
    if let Some(kind) = validate::reference(&object["spec"]) {
        return Err(ManifestError::Reference(kind));
    }
    Pod::parse(object, Origin::File).map_err(ManifestError::Pod)
}

/// JSON is YAML, so one parser reads both.
fn parse(text: &[u8]) -> Result<Value, ParseError> {
    let text = std::str::from_utf8(text)?;
    let object: Value = serde_saphyr::from_str(text)?;
    let (api_version, kind) = (&object["apiVersion"], &object["kind"]);
    if api_version != "v1" || kind != "Pod" {
        return Err(ParseError::Kind {
            api_version: api_version.clone(),
            kind: kind.clone(),
        });
    }
    serde_json::from_value::<k8s_openapi::api::core::v1::Pod>(object.clone())?;
    match object["metadata"]["name"].as_str() {
        None | Some("") => Err(ParseError::NoName),
        Some(_) => Ok(object),
    }
}

/// The static pod's uid: changes with the manifest's content, its path and the node's name. Defaults are not part of
/// it, so that a version of ours with other defaults restarts nothing.
fn hash(object: &Value, path: &Path, node_name: &str) -> String {
    let mut hasher = Sha256::new();
    hasher.update(format!("host:{node_name}file:{}", path.display()));
    hasher.update(object.to_string());
    let digest = hasher.finalize();
    // The length of upstream's hash, which is MD5.
    let first = u128::from_be_bytes(digest[..16].try_into().expect("16 bytes are 16 bytes"));
    format!("{first:032x}")
}

fn set_fields(object: &mut Value, hash: &str, node_name: &str, now: &str) {
    let metadata = &mut object["metadata"];
    let name = metadata["name"].as_str().unwrap_or_default();
    metadata["name"] = format!("{name}-{}", node_name.to_lowercase()).into();
    metadata["uid"] = hash.into();
    if metadata["namespace"].as_str().is_none_or(str::is_empty) {
        metadata["namespace"] = "default".into();
    }
    metadata["creationTimestamp"] = now.into();
    for (key, value) in [(HASH, hash), (SEEN, now), (SOURCE, "file")] {
        metadata["annotations"][key] = value.into();
    }
    if !object["spec"].is_object() {
        object["spec"] = json!({});
    }
    let spec = &mut object["spec"];
    spec["nodeName"] = node_name.into();
    tolerate_all(spec);
    if let Some(spec) = spec.as_object_mut() {
        defaults::pod_spec(spec);
        defaults::pod(spec);
    }
    object["status"] = json!({"phase": "Pending"});
}

/// Taints of the node must not evict a static pod.
fn tolerate_all(spec: &mut Value) {
    let all = json!({"operator": "Exists", "effect": "NoExecute"});
    match &mut spec["tolerations"] {
        Value::Array(list) if list.contains(&all) => {}
        Value::Array(list) => list.push(all),
        other => *other = json!([all]),
    }
}
