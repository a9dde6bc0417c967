//! An object as a JSON tree, and its encoding to stored bytes.

use bytes::Bytes;
use kennel_core::managed_fields::{Managers, Ownership};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{Head, ManagedFields, Stored};
use crate::registry::{self, Resource};
use crate::schema;

/// The initial capacity of the encoding buffer. Most objects fit without reallocation.
const ENCODED_BYTES: usize = 8 * 1024;

/// An object as a tree.
///
/// The row's `raw_field` (`ControllerRevision.data`) must survive byte for byte, since controllers compare
/// its bytes. So the raw text is kept beside the tree; the parsed value in the tree is for reading only.
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// The object.
    pub tree: Value,
    raw: Option<(&'static str, Box<RawValue>)>,
    /// The managers of the fields. The tree of a stored object has no `metadata.managedFields`.
    pub ownership: Ownership,
}

impl Document {
    /// A tree decoded from a client's body.
    pub fn from_body(row: &Resource, tree: Value, body: &[u8]) -> Self {
        Self {
            raw: raw_field(row, body),
            ..Self::new(tree)
        }
    }

    /// A tree decoded from a protobuf message, and the JSON text of the row's `raw_field` in it.
    pub fn from_message(row: &Resource, tree: Value, raw: Option<&[u8]>) -> Self {
        let raw = raw.and_then(|raw| std::str::from_utf8(raw).ok());
        Self {
            raw: raw.and_then(|raw| Some((row.raw_field?, compacted(raw)?))),
            ..Self::new(tree)
        }
    }

    /// A tree without raw parts.
    pub fn new(tree: Value) -> Self {
        Self {
            tree,
            raw: None,
            ownership: Ownership::default(),
        }
    }

    /// The tree of a stored object, its resourceVersion included.
    pub fn from_stored(row: &'static Resource, stored: &Stored) -> serde_json::Result<Self> {
        let (mut tree, mut ownership) = read(&stored.value)?;
        if row.conversion.is_some() {
            // The stored form is relative to the stored version, which the caller converts.
            let managers = managers(registry::stored_row(row), &ownership, &tree);
            ownership = Ownership::Listed(managers);
        }
        tree["metadata"]["resourceVersion"] = stored.modified.to_string().into();
        Ok(Self {
            tree,
            raw: raw_field(row, &stored.value),
            ownership,
        })
    }

    /// The managers with their fields. `row` is that of the tree's version.
    pub fn managers(&self, row: &Resource) -> Managers {
        managers(row, &self.ownership, &self.tree)
    }

    /// Brings the managers into the form in which they are stored with the tree.
    pub fn settle_ownership(&mut self, row: &Resource) {
        let ownership = std::mem::take(&mut self.ownership);
        self.ownership = relative(row, ownership, &self.tree);
    }

    /// The tree as clients see it.
    pub fn into_shown(mut self, row: &Resource, managed_fields: ManagedFields) -> Value {
        if managed_fields == ManagedFields::Shown && !self.ownership.is_empty() {
            let managers = self.managers(row).to_value();
            self.tree["metadata"]["managedFields"] = managers;
        }
        self.tree
    }

    /// Keeps the raw text of an older version if the parsed values are equal.
    pub fn keep_raw_of(&mut self, old: &Self) {
        if let Some((field, _)) = &old.raw
            && self.tree.get(field) == old.tree.get(field)
        {
            self.raw.clone_from(&old.raw);
        }
    }

    /// The bytes to store, without resourceVersion, and the head that goes with them.
    pub fn encode(&self, row: &Resource) -> serde_json::Result<(Bytes, Head)> {
        let mut out = Vec::with_capacity(ENCODED_BYTES);
        out.extend_from_slice(b"{\"apiVersion\":\"");
        if !row.group.is_empty() {
            out.extend_from_slice(row.group.as_bytes());
            out.push(b'/');
        }
        out.extend_from_slice(row.version.as_bytes());
        out.extend_from_slice(b"\",\"kind\":\"");
        out.extend_from_slice(row.kind.as_bytes());
        out.extend_from_slice(b"\",\"metadata\":{");
        let splice = u32::try_from(out.len()).unwrap_or(0);
        let empty = Map::new();
        let metadata = self.tree["metadata"].as_object().unwrap_or(&empty);
        let managed = self.put_ownership(&mut out, row);
        put_members(
            &mut out,
            metadata,
            &["resourceVersion", "managedFields", "selfLink"],
        )?;
        out.push(b'}');
        for (key, value) in self.tree.as_object().unwrap_or(&empty) {
            if matches!(key.as_str(), "apiVersion" | "kind" | "metadata") {
                continue;
            }
            out.push(b',');
            put_key(&mut out, key)?;
            match &self.raw {
                Some((field, raw)) if key == field => out.extend_from_slice(raw.get().as_bytes()),
                _ => serde_json::to_writer(&mut out, value)?,
            }
        }
        out.push(b'}');
        // What stays in memory is a copy of exactly the right size.
        Ok((
            Bytes::copy_from_slice(&out),
            Head::of(row, &self.tree, splice, managed),
        ))
    }

    /// Writes the stored form of the managers, and returns how many bytes it has.
    fn put_ownership(&self, out: &mut Vec<u8>, row: &Resource) -> u32 {
        if self.ownership.is_empty() {
            return 0;
        }
        let before = out.len();
        out.extend_from_slice(MANAGED_FIELDS);
        match &self.ownership {
            Ownership::Relative(managers) => managers.write(out),
            listed @ Ownership::Listed(_) => {
                relative(row, listed.clone(), &self.tree).write(out);
            }
        }
        out.push(b',');
        u32::try_from(out.len() - before).unwrap_or(0)
    }
}

/// What the managers begin with in stored bytes, at the beginning of the metadata.
pub(super) const MANAGED_FIELDS: &[u8] = b"\"managedFields\":";

/// The tree and the managers of stored bytes.
fn read(bytes: &[u8]) -> serde_json::Result<(Value, Ownership)> {
    let mut tree: Value = serde_json::from_slice(bytes)?;
    let metadata = tree["metadata"].as_object_mut();
    let stored = metadata.and_then(|metadata| metadata.remove("managedFields"));
    let ownership = stored.and_then(|stored| Ownership::from_stored(&stored).ok());
    Ok((tree, ownership.unwrap_or_default()))
}

fn relative(row: &Resource, ownership: Ownership, tree: &Value) -> Ownership {
    let Some(ty) = schema::find(row.schema) else {
        return Ownership::default();
    };
    ownership.relative_to(schema::Structure::Object(ty), &row.api_version(), tree)
}

fn managers(row: &Resource, ownership: &Ownership, tree: &Value) -> Managers {
    let Some(ty) = schema::find(row.schema) else {
        return Managers::default();
    };
    ownership.list(schema::Structure::Object(ty), &row.api_version(), tree)
}

/// `metadata.managedFields` of stored bytes, as clients see them.
pub(super) fn managed_fields(row: &Resource, bytes: &[u8]) -> Box<str> {
    let mut text = String::new();
    let (tree, ownership) = read(bytes).unwrap_or_default();
    managers(row, &ownership, &tree).write(&mut text);
    text.into()
}

fn put_members(
    out: &mut Vec<u8>,
    members: &Map<String, Value>,
    left_out: &[&str],
) -> serde_json::Result<()> {
    let mut first = true;
    for (key, value) in members {
        if left_out.contains(&key.as_str()) {
            continue;
        }
        if !std::mem::take(&mut first) {
            out.push(b',');
        }
        put_key(out, key)?;
        serde_json::to_writer(&mut *out, value)?;
    }
    Ok(())
}

fn put_key(out: &mut Vec<u8>, key: &str) -> serde_json::Result<()> {
    serde_json::to_writer(&mut *out, key)?;
    out.push(b':');
    Ok(())
}

fn raw_field(row: &Resource, json: &[u8]) -> Option<(&'static str, Box<RawValue>)> {
    let field = row.raw_field?;
    Some((field, compacted(schema::raw_member(json, field)?)?))
}

fn compacted(json: &str) -> Option<Box<RawValue>> {
    RawValue::from_string(compact(json)).ok()
}

/// Drops white space between tokens; strings, numbers and escapes stay as they are.
fn compact(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut in_string = false;
    let mut escaped = false;
    for c in json.chars() {
        if in_string {
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
        } else if c.is_ascii_whitespace() {
            continue;
        } else {
            in_string = c == '"';
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::registry::find;

    #[test]
    fn encodes_metadata_first_and_leaves_the_revision_out() {
        let row = find("", "v1", "configmaps").unwrap();
        let tree = json!({
            "data": {"a": "b"}, "kind": "ConfigMap", "apiVersion": "v1",
            "metadata": {"name": "x", "namespace": "d", "resourceVersion": "7", "labels": {"b": "2", "a": "1"}},
        });
        let (bytes, head) = Document::new(tree).encode(row).unwrap();
        assert_eq!(
            std::str::from_utf8(&bytes).unwrap(),
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"labels":{"a":"1","b":"2"},"name":"x","namespace":"d"},"data":{"a":"b"}}"#
        );
        assert_eq!(Head::read(row, &bytes).unwrap(), head);
        assert_eq!(head.label("b"), Some("2"));
    }

    #[test]
    fn heads_know_selectable_fields() {
        let row = find("", "v1", "pods").unwrap();
        let tree = json!({
            "metadata": {"name": "p"},
            "spec": {"nodeName": "n1"}, "status": {"phase": "Running", "podIPs": [{"ip": "10.0.0.1"}]},
        });
        let (bytes, head) = Document::new(tree).encode(row).unwrap();
        assert_eq!(Head::read(row, &bytes).unwrap(), head);
        assert_eq!(head.field(row, "spec.nodeName"), Some("n1"));
        assert_eq!(head.field(row, "spec.hostNetwork"), Some("false"));
        assert_eq!(head.field(row, "status.podIPs"), Some("10.0.0.1"));
        assert_eq!(head.field(row, "spec.unknown"), None);
    }

    #[test]
    fn revision_data_keeps_its_escapes() {
        let row = find("apps", "v1", "controllerrevisions").unwrap();
        let body = br#"{"metadata":{"name":"r"},"data": {"z":1, "a":"x \u0026\u0026 \"y\\"},"revision":1}"#;
        let tree: Value = serde_json::from_slice(body).unwrap();
        let (bytes, _) = Document::from_body(row, tree, body).encode(row).unwrap();
        let text = std::str::from_utf8(&bytes).unwrap();
        assert!(
            text.contains(r#""data":{"z":1,"a":"x \u0026\u0026 \"y\\"},"#),
            "{text}"
        );
    }
}
