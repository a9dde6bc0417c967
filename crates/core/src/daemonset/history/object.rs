//! The ControllerRevision to create (rule 4.6), as the text of its JSON.
//!
//! Text and not a tree, because the data has to arrive byte for byte.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::HASH_LABEL;
use super::name::name;

/// What a new revision is made from.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    /// Namespace of the DaemonSet.
    pub namespace: &'a str,
    /// Its name.
    pub daemon_set: &'a str,
    /// Its uid.
    pub uid: &'a str,
    /// All its annotations: the reason of the change travels in one of them.
    pub annotations: &'a BTreeMap<String, String>,
    /// Its template.
    pub template: &'a Value,
    /// What the revision keeps, from [`of_template`](super::data::of_template).
    pub data: &'a str,
    /// What pods of the revision carry.
    pub hash: &'a str,
    /// The revision's number.
    pub revision: i64,
}

#[derive(Serialize)]
struct Object<'a> {
    #[serde(rename = "apiVersion")]
    api_version: &'a str,
    kind: &'a str,
    metadata: Value,
    data: &'a RawValue,
    revision: i64,
}

/// The body of the request that creates the revision. Nothing, if the data is no JSON.
pub fn body(parts: Parts<'_>) -> Option<String> {
    let data: &RawValue = serde_json::from_str(parts.data).ok()?;
    let object = Object {
        api_version: "apps/v1",
        kind: "ControllerRevision",
        metadata: metadata(parts),
        data,
        revision: parts.revision,
    };
    serde_json::to_string(&object).ok()
}

fn metadata(parts: Parts<'_>) -> Value {
    let labels = parts.template.pointer("/metadata/labels");
    let mut labels = labels
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    labels.insert(HASH_LABEL.into(), parts.hash.into());
    let mut metadata = json!({
        "name": name(parts.daemon_set, parts.hash),
        "namespace": parts.namespace,
        "labels": labels,
        "ownerReferences": [{
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "name": parts.daemon_set,
            "uid": parts.uid,
            "controller": true,
            "blockOwnerDeletion": true,
        }],
    });
    if !parts.annotations.is_empty() {
        metadata["annotations"] = json!(parts.annotations);
    }
    metadata
}

#[cfg(test)]
mod tests {
    use super::super::data::of_template;
    use super::*;

    fn made(template: &Value, annotations: &[(&str, &str)]) -> String {
        let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        let annotations = annotations.iter().map(own).collect();
        let data = of_template(template);
        let parts = Parts {
            namespace: "ns",
            daemon_set: "logs",
            uid: "u",
            annotations: &annotations,
            template,
            data: &data,
            hash: "5d8b",
            revision: 3,
        };
        body(parts).unwrap()
    }

    #[test]
    fn s4_6_labels_annotations_owner_and_number() {
        let template = json!({"metadata": {"labels": {"app": "x", HASH_LABEL: "user"}}});
        let text = made(&template, &[("kubernetes.io/change-cause", "why")]);
        let object: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            object,
            json!({
                "apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": 3,
                "metadata": {
                    "name": "logs-5d8b", "namespace": "ns",
                    "labels": {"app": "x", HASH_LABEL: "5d8b"},
                    "annotations": {"kubernetes.io/change-cause": "why"},
                    "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet",
                        "name": "logs", "uid": "u", "controller": true,
                        "blockOwnerDeletion": true}]},
                "data": {"spec": {"template": {"$patch": "replace",
                    "metadata": {"labels": {"app": "x", HASH_LABEL: "user"}}}}}})
        );
    }

    #[test]
    fn s4_5_the_data_travels_byte_for_byte() {
        let template = json!({"spec": {"containers": [{"args": ["<&>\u{2028}"]}]}});
        let text = made(&template, &[]);
        let data = of_template(&template);
        assert!(data.contains("\\u003c\\u0026\\u003e\\u2028"), "{data}");
        assert!(text.contains(&format!("\"data\":{data}")), "{text}");
        assert!(!text.contains("annotations"), "{text}");
    }
}
