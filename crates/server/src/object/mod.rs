//! Stored objects: immutable JSON bytes and a parsed head.
//!
//! The stored bytes start with `apiVersion`, `kind` and `metadata`, in this order, and have no
//! `resourceVersion`: the revision is known only at commit, so it is inserted when the bytes are sent. A tree
//! ([`Document`]) is built only to patch, default or validate an object.

mod document;
mod head;
mod pick;

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use kennel_store::Record;
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

/// Parses the head of a stored object, and checks that it is the object of its key.
pub fn decode(key: &str, bytes: &[u8]) -> Result<Head, StoredError> {
    let Some(row) = row_of_key(key) else {
        // Of a resource that another version has: kept, and served by nothing.
        tracing::warn!(
            key,
            "a stored object belongs to no resource of this version"
        );
        return Ok(Head::default());
    };
    let head = Head::read(row, bytes)?;
    let namespace = row.namespaced().then_some(&*head.namespace);
    if head.splice == 0 || key != self::key(row, namespace, &head.name) {
        return Err(StoredError::OtherObject);
    }
    Ok(head)
}

/// Writes an object with its resourceVersion.
pub fn put(out: &mut BytesMut, stored: &Record<Head>, revision: u64) {
    splice(out, &stored.value, stored.head.splice, revision);
}

/// Writes encoded bytes with a resourceVersion inserted at `at`.
pub fn splice(out: &mut BytesMut, encoded: &[u8], at: u32, revision: u64) {
    let (before, after) = encoded.split_at(at as usize);
    out.reserve(encoded.len() + SPLICE_MAX);
    out.put_slice(before);
    out.put_slice(b"\"resourceVersion\":\"");
    out.put_slice(revision.to_string().as_bytes());
    out.put_slice(b"\",");
    out.put_slice(after);
}

/// Writes an object's metadata with its resourceVersion. Does not parse the rest of the object.
pub fn put_metadata(
    out: &mut BytesMut,
    stored: &Record<Head>,
    revision: u64,
) -> serde_json::Result<()> {
    // The splice point is behind the brace that opens the metadata.
    let opened = (stored.head.splice as usize).saturating_sub(1);
    let from_there = serde_json::Deserializer::from_slice(&stored.value[opened..]);
    let metadata = from_there.into_iter::<&RawValue>().next().transpose()?;
    let metadata = metadata.map_or("{}", RawValue::get);
    splice(out, metadata.as_bytes(), 1, revision);
    Ok(())
}

/// An object's bytes with its resourceVersion.
pub fn bytes(stored: &Record<Head>, revision: u64) -> Bytes {
    let mut out = BytesMut::with_capacity(stored.value.len() + SPLICE_MAX);
    put(&mut out, stored, revision);
    out.freeze()
}
