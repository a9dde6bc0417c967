//! Metadata-only forms: `PartialObjectMetadata` and its list.

use bytes::{BufMut as _, Bytes, BytesMut};
use serde_json::{Value, json};

use crate::object::{self, ManagedFields, Stored};
use crate::registry::Resource;

/// The kind of a single metadata-only object.
pub const KIND: &str = "PartialObjectMetadata";
/// The kind of a list of metadata-only objects.
pub const LIST_KIND: &str = "PartialObjectMetadataList";

/// A metadata-only object up to its metadata.
const PARTIAL: &[u8] =
    b"{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":";

/// The group-version, in the version (`v1` or `v1beta1`) the client asked for.
pub(super) fn api_version(version: &str) -> String {
    format!("meta.k8s.io/{version}")
}

/// The metadata of an object as `PartialObjectMetadata` of `meta.k8s.io/v1`.
pub fn partial_metadata(object: &Value) -> Value {
    partial(object, "v1")
}

/// The metadata of an object in the version (`v1` or `v1beta1`) the client asked for.
pub(super) fn partial(object: &Value, version: &str) -> Value {
    let metadata = object.get("metadata").cloned().unwrap_or_else(|| json!({}));
    json!({"kind": KIND, "apiVersion": api_version(version), "metadata": metadata})
}

/// Writes the metadata of a stored object as `PartialObjectMetadata` of `meta.k8s.io/v1`.
pub fn put_partial_metadata(
    out: &mut BytesMut,
    row: &Resource,
    stored: &Stored,
    revision: u64,
    managed_fields: ManagedFields,
) -> serde_json::Result<()> {
    out.put_slice(PARTIAL);
    object::put_metadata(out, row, stored, revision, managed_fields)?;
    out.put_u8(b'}');
    Ok(())
}

/// The metadata of stored objects as `PartialObjectMetadataList`. `list_metadata` is that of the list
/// itself: resourceVersion, continue, remainingItemCount.
pub fn partial_metadata_list(
    list_metadata: &Value,
    row: &Resource,
    items: &[Stored],
    managed_fields: ManagedFields,
) -> serde_json::Result<Bytes> {
    let (kind, version) = (LIST_KIND, api_version("v1"));
    let head = format!(
        "{{\"kind\":\"{kind}\",\"apiVersion\":\"{version}\",\"metadata\":{list_metadata},\"items\":["
    );
    let mut out = BytesMut::from(head.as_bytes());
    for (index, stored) in items.iter().enumerate() {
        if index > 0 {
            out.put_u8(b',');
        }
        put_partial_metadata(&mut out, row, stored, stored.modified, managed_fields)?;
    }
    out.put_slice(b"]}");
    Ok(out.freeze())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kennel_store::Record;

    use super::*;
    use crate::object::Document;
    use crate::registry::RESOURCES;

    #[test]
    fn only_the_metadata_is_left() {
        let object =
            json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}, "spec": {}});
        let expected = json!({
            "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "p"}
        });
        assert_eq!(partial_metadata(&object), expected);
    }

    fn pods() -> &'static Resource {
        RESOURCES.iter().find(|row| row.kind == "Pod").unwrap()
    }

    fn list(metadata: &Value, items: &[Stored]) -> Value {
        let list = partial_metadata_list(metadata, pods(), items, ManagedFields::Shown);
        serde_json::from_slice(&list.unwrap()).unwrap()
    }

    fn stored(metadata: &Value) -> Stored {
        let tree = json!({"metadata": metadata, "spec": {"a": "}"}, "status": {}});
        let (value, head) = Document::new(tree).encode(pods()).unwrap();
        Arc::new(Record {
            key: "registry.pods.n.p".into(),
            value,
            created: 3,
            modified: 7,
            head,
        })
    }

    #[test]
    fn a_list_has_the_metadata_of_each_stored_object() {
        let own = json!({"name": "p", "uid": "u", "labels": {"a": "} \" {"}});
        let items = [stored(&own), stored(&own)];
        let list = list(&json!({"resourceVersion": "9"}), &items);
        assert_eq!(list["kind"], "PartialObjectMetadataList");
        assert_eq!(list["metadata"]["resourceVersion"], "9");
        let mut metadata = own.clone();
        metadata["resourceVersion"] = json!("7");
        let expected = partial_metadata(&json!({ "metadata": metadata }));
        assert_eq!(list["items"], json!([expected, expected]));
    }

    #[test]
    fn an_empty_list_has_items() {
        let list = list(&json!({}), &[]);
        assert_eq!(list["items"], json!([]));
    }
}
