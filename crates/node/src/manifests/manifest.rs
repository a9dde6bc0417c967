//! A file's pod: read, refused if it cannot be run, filled in as the API would, given a name and a uid.

use std::path::Path;

use kennel_core::pod::defaults;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{HASH, SEEN, SOURCE, refuse};
use crate::pods::{Origin, Pod};

/// The pod that a file asks for, or what is wrong with it.
pub(super) fn read(text: &[u8], path: &Path, node_name: &str, now: &str) -> Result<Pod, String> {
    let mut object = parse(text)
        .map_err(|why| format!("couldn't parse as pod({why}), please check manifest file"))?;
    let hash = hash(&object, path, node_name);
    complete(&mut object, &hash, node_name, now);
    refuse::check(&object).map_err(|why| format!("invalid pod: {why}"))?;
    if let Some(what) = refuse::reference(&object["spec"]) {
        return Err(format!("static pods may not reference {what}"));
    }
    Pod::parse(object, Origin::File).map_err(|error| format!("invalid pod: {error}"))
}

/// JSON is YAML, so one way is enough for both.
fn parse(text: &[u8]) -> Result<Value, String> {
    let text = std::str::from_utf8(text).map_err(|error| error.to_string())?;
    let object: Value = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
    let kind = (&object["apiVersion"], &object["kind"]);
    if kind.0 != "v1" || kind.1 != "Pod" {
        return Err(format!(
            "it is no v1 Pod: apiVersion {}, kind {}",
            kind.0, kind.1
        ));
    }
    let typed = serde_json::from_value::<k8s_openapi::api::core::v1::Pod>(object.clone());
    typed.map_err(|error| error.to_string())?;
    match object["metadata"]["name"].as_str() {
        None | Some("") => Err("name is needed for the pod".to_owned()),
        Some(_) => Ok(object),
    }
}

/// What makes this pod another one than before: what the file says (not how), where, and on which node. What is
/// filled in has no part in it: a newer version of ours must not restart anything.
fn hash(object: &Value, path: &Path, node_name: &str) -> String {
    let mut hasher = Sha256::new();
    hasher.update(format!("host:{node_name}file:{}", path.display()));
    hasher.update(object.to_string());
    let digest = hasher.finalize();
    // As long as upstream's, which uses MD5.
    let first = u128::from_be_bytes(digest[..16].try_into().expect("16 bytes are 16 bytes"));
    format!("{first:032x}")
}

fn complete(object: &mut Value, hash: &str, node_name: &str, now: &str) {
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

/// Nothing that is wrong with its node drives a static pod away.
fn tolerate_all(spec: &mut Value) {
    let all = json!({"operator": "Exists", "effect": "NoExecute"});
    match &mut spec["tolerations"] {
        Value::Array(list) if list.contains(&all) => {}
        Value::Array(list) => list.push(all),
        other => *other = json!([all]),
    }
}
