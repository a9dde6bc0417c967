//! Config that belongs to the version (R10): the ConfigMaps that a template names, their content's hash, and the names of
//! the copies that the pods of one revision use.
//!
//! ```text
//!   template ─▶ references ─▶ contents of those ConfigMaps ─▶ hash ─▶ choose (which data the target's revision has)
//!   data of a revision, its hash ─▶ pod_template (names the revision's copies)
//! ```

mod choose;
mod copy;
mod references;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::daemonset::history::data;
pub use choose::{Choice, Waits, choose, find};
pub use copy::ConfigCopy;
pub use references::{References, references};

/// Annotation of pod templates in ControllerRevisions: the hash of the config that belongs to the revision. Also the
/// label of that revision's copies.
pub const CONFIG: &str = "rollout.kennel.dev/config";
/// Annotation of a copy: the name of the ConfigMap that it was copied from.
pub const COPY_OF: &str = "rollout.kennel.dev/copy-of";

/// Bytes of a SHA-256 that identify contents: enough that nobody finds two contents with the same hash by chance.
const HASH_BYTES: usize = 10;
/// The longest name of a ConfigMap.
const LONGEST_NAME: usize = 253;

/// The hash of one ConfigMap's `data` and `binaryData`.
pub fn content_hash(contents: &Value) -> String {
    let mut hasher = Sha256::new();
    for member in ["data", "binaryData"] {
        let entries = contents.get(member).and_then(Value::as_object);
        let entries = entries.into_iter().flatten();
        for (key, value) in entries {
            let value = value.as_str().unwrap_or_default();
            hasher.update(format!("{member} {} {} ", key.len(), value.len()));
            hasher.update(key);
            hasher.update(value);
        }
    }
    hex(hasher)
}

/// The hash of all ConfigMaps that a template names: the name of each, and the hash of its content if it exists.
pub fn config_hash<'a>(contents: impl Iterator<Item = (&'a str, Option<&'a str>)>) -> String {
    let mut hasher = Sha256::new();
    for (name, content) in contents {
        hasher.update(format!("{name} {} ", content.unwrap_or("-")));
    }
    hex(hasher)
}

/// The name of a revision's copy of a ConfigMap. Each revision has its own, so that they are removed with it.
pub fn copy_name(config_map: &str, config: &str, revision: &str) -> String {
    let mut hasher = Sha256::new();
    hasher.update(format!("{config_map} {config} {revision}"));
    let hash = hex(hasher);
    let room = LONGEST_NAME - hash.len() - 1;
    let mut end = config_map.len().min(room);
    while !config_map.is_char_boundary(end) {
        end -= 1;
    }
    let stem = config_map[..end].trim_end_matches(['.', '-']);
    format!("{stem}-{hash}")
}

fn hex(hasher: Sha256) -> String {
    let digest = hasher.finalize();
    let mut text = String::with_capacity(2 * HASH_BYTES);
    for byte in &digest[..HASH_BYTES] {
        // Writing to a String does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The config hash that a template names.
pub fn named(template: &Value) -> Option<&str> {
    template
        .get("metadata")?
        .get("annotations")?
        .get(CONFIG)?
        .as_str()
}

/// Whether a revision's data may name a config hash: much cheaper than reading it.
pub fn may_be_pinned(data: &str) -> bool {
    data.contains(CONFIG)
}

/// The template with this config hash, or without any.
pub fn with_hash(template: &Value, hash: Option<&str>) -> Value {
    let mut template = template.clone();
    let Some(members) = template.as_object_mut() else {
        return template;
    };
    let metadata = members.entry("metadata").or_insert_with(empty);
    if let Some(metadata) = metadata.as_object_mut() {
        let annotations = metadata.entry("annotations").or_insert_with(empty);
        if let Some(annotations) = annotations.as_object_mut() {
            match hash {
                Some(hash) => drop(annotations.insert(CONFIG.to_owned(), hash.into())),
                None => drop(annotations.remove(CONFIG)),
            }
            if annotations.is_empty() {
                metadata.remove("annotations");
            }
        }
    }
    template
}

fn empty() -> Value {
    Value::Object(Map::new())
}

/// The template that pods of a revision are made of: as its data has it, and with the names of its own copies.
pub fn pod_template<'a>(template: &'a Value, revision: &str) -> Cow<'a, Value> {
    let Some(config) = named(template) else {
        return Cow::Borrowed(template);
    };
    let mut rewritten = template.clone();
    references::visit(&mut rewritten, &mut |mut reference| {
        if let Some(name) = reference.config_map_mut() {
            let copy = copy_name(name.as_str().unwrap_or_default(), config, revision);
            *name = copy.into();
        }
    });
    Cow::Owned(rewritten)
}

/// The template of a revision's data, if that or the template of the DaemonSet names a config hash. Otherwise they are
/// the same.
pub fn template_of_data(template: &Value, data: &str) -> Option<Arc<Value>> {
    let pinned = may_be_pinned(data) || named(template).is_some();
    pinned.then(|| data::template(data)).flatten().map(Arc::new)
}

/// Whether two templates differ, and only in annotations that hold checksums of config.
pub fn only_checksums_differ(a: &Value, b: &Value) -> bool {
    let (a, b) = (with_hash(a, None), with_hash(b, None));
    a != b && without_checksums(a) == without_checksums(b)
}

fn without_checksums(mut template: Value) -> Value {
    if let Some(metadata) = template.get_mut("metadata").and_then(Value::as_object_mut) {
        let annotations = metadata.remove("annotations");
        let mut kept: BTreeMap<String, Value> = match annotations {
            Some(Value::Object(annotations)) => annotations.into_iter().collect(),
            _ => BTreeMap::new(),
        };
        kept.retain(|key, _| !is_checksum(key));
        if !kept.is_empty() {
            let kept = Value::Object(kept.into_iter().collect());
            metadata.insert("annotations".to_owned(), kept);
        }
    }
    template
}

/// Helm charts write `checksum/config`; others have `…-checksum`, `configHash` or `config-hash`.
fn is_checksum(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    key.contains("checksum") || key.ends_with("hash") || key.ends_with("sha256")
}

#[cfg(test)]
mod tests;
