//! Stored objects: immutable JSON bytes and a parsed head.
//!
//! The stored bytes start with `apiVersion`, `kind` and `metadata`, in this order, and have no
//! `resourceVersion`: the revision is known only at commit, so it is inserted when the bytes are sent. Managed
//! fields are stored in a short form, which is expanded for clients that want them. A tree
//! ([`Document`]) is built only to patch, default or validate an object.

mod document;
mod head;
mod pick;
pub(crate) mod secret;
pub(crate) mod stored_protobuf;
mod texts;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use kennel_store::{Record, Store};
use serde_json::value::RawValue;

pub use document::Document;
pub use head::Head;

use crate::registry::{RESOURCES, Resource};

/// Why stored bytes are not the object of their key.
#[derive(Debug, thiserror::Error)]
pub enum StoredError {
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("it is another object than its key names")]
    OtherObject,
}

/// A stored object.
pub type Stored = Arc<Record<Head>>;

/// How many bytes a spliced `"resourceVersion":"…",` takes at most.
const SPLICE_MAX: usize = 42;

/// The key of an object.
pub fn key(row: &Resource, namespace: Option<&str>, name: &str) -> String {
    match namespace {
        Some(namespace) => format!("/registry/{}/{namespace}/{name}", row.storage()),
        None => format!("/registry/{}/{name}", row.storage()),
    }
}

/// The prefix of all keys of a resource, or of those in one namespace.
pub fn prefix(row: &Resource, namespace: Option<&str>) -> String {
    match namespace {
        Some(namespace) => format!("/registry/{}/{namespace}/", row.storage()),
        None => format!("/registry/{}/", row.storage()),
    }
}

/// The prefixes of all stored resources, each once.
pub fn collections() -> Vec<String> {
    let mut prefixes: Vec<String> = RESOURCES.iter().map(|row| prefix(row, None)).collect();
    prefixes.dedup();
    prefixes.sort();
    prefixes.dedup();
    prefixes
}

/// The row in whose version the object of this key is stored.
pub fn row_of_key(key: &str) -> Option<&'static Resource> {
    let rest = key.strip_prefix("/registry/")?;
    RESOURCES.iter().find(|row| {
        rest.strip_prefix(row.storage())
            .is_some_and(|below| below.starts_with('/'))
    })
}

/// The stored objects that belong to no resource of this version, counted by the beginning of their keys: `widgets (2)`.
pub fn unserved(store: &dyn Store<Head>) -> Vec<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for record in store.range("", None, None).records {
        if row_of_key(&record.key).is_none() {
            let rest = record.key.strip_prefix("/registry/");
            let rest = rest.unwrap_or(&record.key);
            let resource = rest.split('/').next().unwrap_or_default();
            *counts.entry(resource.to_owned()).or_default() += 1;
        }
    }
    counts
        .into_iter()
        .map(|(resource, count)| format!("{resource} ({count})"))
        .collect()
}

/// Parses the head of a stored object, and checks that it is the object of its key.
pub fn decode(key: &str, bytes: &[u8]) -> Result<Head, StoredError> {
    let Some(row) = row_of_key(key) else {
        // Of a resource that another version has: kept, and served by nothing. See `unserved`.
        return Ok(Head::default());
    };
    let head = Head::read(row, bytes)?;
    let namespace = row.namespaced().then_some(&*head.namespace);
    if head.splice == 0 || key != self::key(row, namespace, &head.name) {
        return Err(StoredError::OtherObject);
    }
    Ok(head)
}

/// Whether objects are shown with `metadata.managedFields`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManagedFields {
    Shown,
    /// The client does not want them: our own do not read them.
    Omitted,
}

/// Writes an object with its resourceVersion. `row` is that of the stored version.
pub fn put(
    out: &mut BytesMut,
    row: &Resource,
    stored: &Record<Head>,
    revision: u64,
    managed_fields: ManagedFields,
) {
    let object = Encoded {
        row,
        bytes: &stored.value,
        head: &stored.head,
    };
    object.put(out, Some(revision), managed_fields);
}

/// An object as it is stored, or as it would be.
pub struct Encoded<'a> {
    pub row: &'a Resource,
    pub bytes: &'a [u8],
    pub head: &'a Head,
}

impl Encoded<'_> {
    /// Writes it as clients see it.
    pub fn put(&self, out: &mut BytesMut, revision: Option<u64>, managed_fields: ManagedFields) {
        let (before, after) = self.bytes.split_at(self.head.splice as usize);
        self.put_around(out, (before, after), revision, managed_fields);
    }

    /// Writes its metadata as clients see it. Does not parse the rest unless managed fields are shown.
    fn put_metadata(
        &self,
        out: &mut BytesMut,
        revision: u64,
        managed_fields: ManagedFields,
    ) -> serde_json::Result<()> {
        // The splice point is behind the brace that opens the metadata.
        let opened = (self.head.splice as usize).saturating_sub(1);
        let from_there = serde_json::Deserializer::from_slice(&self.bytes[opened..]);
        let metadata = from_there.into_iter::<&RawValue>().next().transpose()?;
        let metadata = metadata.map_or("{}", RawValue::get);
        let around = metadata.as_bytes().split_at(1);
        self.put_around(out, around, Some(revision), managed_fields);
        Ok(())
    }

    /// Writes what is before and after the splice point, with what belongs there for a client.
    fn put_around(
        &self,
        out: &mut BytesMut,
        (before, after): (&[u8], &[u8]),
        revision: Option<u64>,
        managed_fields: ManagedFields,
    ) {
        let managed = self.head.managed as usize;
        out.reserve(before.len() + after.len() + SPLICE_MAX);
        out.put_slice(before);
        if let Some(revision) = revision {
            out.put_slice(b"\"resourceVersion\":\"");
            out.put_slice(revision.to_string().as_bytes());
            out.put_slice(b"\",");
        }
        if managed > 0 && managed_fields == ManagedFields::Shown {
            let shown = &self.head.shown_managed_fields;
            let entries = shown.get_or_init(|| document::managed_fields(self.row, self.bytes));
            out.put_slice(document::MANAGED_FIELDS);
            out.put_slice(entries.as_bytes());
            out.put_slice(b",");
        }
        out.put_slice(&after[managed..]);
    }
}

/// Whether two versions of an object, as they are stored, differ in their managers only.
pub fn same_but_managers(a: (&[u8], &Head), b: (&[u8], &Head)) -> bool {
    let managers = |head: &Head| head.splice as usize..(head.splice + head.managed) as usize;
    let (in_a, in_b) = (managers(a.1), managers(b.1));
    a.0[..in_a.start] == b.0[..in_b.start] && a.0[in_a.end..] == b.0[in_b.end..]
}

/// Writes an object's metadata with its resourceVersion.
pub fn put_metadata(
    out: &mut BytesMut,
    row: &Resource,
    stored: &Record<Head>,
    revision: u64,
    managed_fields: ManagedFields,
) -> serde_json::Result<()> {
    let object = Encoded {
        row,
        bytes: &stored.value,
        head: &stored.head,
    };
    object.put_metadata(out, revision, managed_fields)
}

/// An object's bytes with its resourceVersion.
pub fn bytes(
    row: &Resource,
    stored: &Record<Head>,
    revision: u64,
    managed_fields: ManagedFields,
) -> Bytes {
    let mut out = BytesMut::with_capacity(stored.value.len() + SPLICE_MAX);
    put(&mut out, row, stored, revision, managed_fields);
    out.freeze()
}
