//! The head of an object: the fields that lists, watches and selectors need, kept parsed.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::OnceLock;

use serde_json::Value;

use super::document::MANAGED_FIELDS;
use super::pick::pick;
use super::texts::Texts;
use crate::registry::Resource;

/// The parsed fields of a stored object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// `metadata.name`.
    pub name: Box<str>,
    /// `metadata.namespace`; empty for cluster-scoped objects.
    pub namespace: Box<str>,
    /// `metadata.uid`.
    pub uid: Box<str>,
    /// `metadata.labels`, sorted by key: each key, then its value.
    pub labels: Texts,
    /// The values of the row's `selectable` fields, in the row's order.
    pub fields: Texts,
    /// The offset in the bytes at which `"resourceVersion":"…",` is inserted.
    pub splice: u32,
    /// How many bytes from there on are the managers' stored form.
    pub managed: u32,
    /// `metadata.managedFields` as clients see it, once one has seen it.
    pub shown_managed_fields: OnceLock<Box<str>>,
}

impl Head {
    /// The head of a tree that was encoded with its splice point at `splice`.
    pub fn of(row: &Resource, tree: &Value, splice: u32, managed: u32) -> Self {
        let metadata = &tree["metadata"];
        let fields = row.selectable.iter().map(|field| {
            let steps = storage_path(field).split('.');
            text(field, steps.fold(tree, |value, step| &value[step]))
        });
        Self {
            name: string(&metadata["name"]),
            namespace: string(&metadata["namespace"]),
            uid: string(&metadata["uid"]),
            labels: labels(&metadata["labels"]),
            fields: fields.collect(),
            splice,
            managed,
            shown_managed_fields: OnceLock::new(),
        }
    }

    /// The head of stored bytes.
    pub fn read(row: &Resource, bytes: &[u8]) -> serde_json::Result<Self> {
        let mut paths = vec![
            "metadata.name",
            "metadata.namespace",
            "metadata.uid",
            "metadata.labels",
        ];
        paths.extend(
            row.selectable
                .iter()
                .filter(|f| **f != "name")
                .map(|f| storage_path(f)),
        );
        let found = pick(bytes, &paths)?;
        let mut rest = found[4..].iter();
        let fields = row.selectable.iter().map(|field| {
            let value = if *field == "name" {
                Some(&found[0])
            } else {
                rest.next()
            };
            text(field, value.unwrap_or(&Value::Null))
        });
        Ok(Self {
            fields: fields.collect(),
            name: string(&found[0]),
            namespace: string(&found[1]),
            uid: string(&found[2]),
            labels: labels(&found[3]),
            splice: splice_point(bytes),
            managed: managed_bytes(bytes, splice_point(bytes)),
            shown_managed_fields: OnceLock::new(),
        })
    }

    pub fn label(&self, key: &str) -> Option<&str> {
        let mut pairs = 0..self.labels.len() / 2;
        while let Some(middle) = pairs.len().checked_div(2).filter(|_| !pairs.is_empty()) {
            let at = pairs.start + middle;
            match self.labels.get(2 * at)?.cmp(key) {
                Ordering::Equal => return self.labels.get(2 * at + 1),
                Ordering::Less => pairs.start = at + 1,
                Ordering::Greater => pairs.end = at,
            }
        }
        None
    }

    /// Keys and values, sorted by key.
    pub fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        let pairs = 0..self.labels.len() / 2;
        pairs.filter_map(|at| Some((self.labels.get(2 * at)?, self.labels.get(2 * at + 1)?)))
    }

    /// The value of the row's selectable field at this place.
    pub fn field_at(&self, at: usize) -> Option<&str> {
        self.fields.get(at)
    }

    /// The value of a selectable field.
    pub fn field(&self, row: &Resource, name: &str) -> Option<&str> {
        match name {
            "metadata.name" => Some(&self.name),
            "metadata.namespace" => Some(&self.namespace),
            _ => {
                let at = row.selectable.iter().position(|f| *f == name)?;
                self.field_at(at)
            }
        }
    }
}

/// The JSON path of a selectable field whose name is an alias.
fn storage_path(field: &str) -> &str {
    match field {
        "name" => "metadata.name",
        "source" => "source.component",
        other => other,
    }
}

/// A field's value as selectors compare it.
fn text<'a>(field: &str, value: &'a Value) -> Cow<'a, str> {
    match value {
        Value::String(s) => s.as_str().into(),
        Value::Bool(b) => b.to_string().into(),
        Value::Number(n) => n.to_string().into(),
        Value::Array(items) => {
            let ips: Vec<&str> = items.iter().filter_map(|i| i["ip"].as_str()).collect();
            ips.join(",").into()
        }
        // Selectors compare an absent boolean as false.
        _ if matches!(field, "spec.unschedulable" | "spec.hostNetwork") => "false".into(),
        _ => "".into(),
    }
}

fn string(value: &Value) -> Box<str> {
    value.as_str().unwrap_or_default().into()
}

fn labels(value: &Value) -> Texts {
    let Some(map) = value.as_object() else {
        return Texts::default();
    };
    let mut pairs: Vec<(&str, &str)> = map
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
        .collect();
    pairs.sort_unstable();
    pairs.into_iter().flat_map(<[&str; 2]>::from).collect()
}

/// How many bytes the managers' stored form has.
fn managed_bytes(bytes: &[u8], splice: u32) -> u32 {
    let from_there = bytes.get(splice as usize..).unwrap_or_default();
    let Some(list) = from_there.strip_prefix(MANAGED_FIELDS) else {
        return 0;
    };
    let mut values =
        serde_json::Deserializer::from_slice(list).into_iter::<serde::de::IgnoredAny>();
    let is_list = values.next().is_some_and(|value| value.is_ok());
    // A comma follows.
    let length = MANAGED_FIELDS.len() + values.byte_offset() + 1;
    u32::try_from(length).ok().filter(|_| is_list).unwrap_or(0)
}

/// The splice point of bytes written by [`super::Document::encode`].
fn splice_point(bytes: &[u8]) -> u32 {
    const MARK: &[u8] = b"\"metadata\":{";
    let at = bytes
        .windows(MARK.len())
        .position(|w| w == MARK)
        .map_or(0, |p| p + MARK.len());
    u32::try_from(at).unwrap_or(0)
}
