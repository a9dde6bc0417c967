//! Metadata-only forms: `PartialObjectMetadata` and its list.

use serde_json::{Value, json};

/// The kind of a single metadata-only object.
pub const KIND: &str = "PartialObjectMetadata";
/// The kind of a list of metadata-only objects.
pub const LIST_KIND: &str = "PartialObjectMetadataList";

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

/// The metadata of objects as `PartialObjectMetadataList`. `list_metadata` is that of the list
/// itself: resourceVersion, continue, remainingItemCount.
pub fn partial_metadata_list<'a>(
    list_metadata: &Value,
    objects: impl IntoIterator<Item = &'a Value>,
) -> Value {
    let items: Vec<Value> = objects.into_iter().map(partial_metadata).collect();
    json!({
        "kind": LIST_KIND,
        "apiVersion": api_version("v1"),
        "metadata": list_metadata,
        "items": items,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_metadata_is_left() {
        let object =
            json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}, "spec": {}});
        let expected = json!({
            "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "p"}
        });
        assert_eq!(partial_metadata(&object), expected);
        let list = partial_metadata_list(&json!({"resourceVersion": "7"}), [&object]);
        assert_eq!(list["kind"], "PartialObjectMetadataList");
        assert_eq!(list["metadata"]["resourceVersion"], "7");
        assert_eq!(list["items"], json!([expected]));
    }

    #[test]
    fn an_empty_list_has_items() {
        assert_eq!(partial_metadata_list(&json!({}), [])["items"], json!([]));
    }
}
