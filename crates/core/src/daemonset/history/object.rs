//! The ControllerRevision to create (rule 4.6), as JSON text: the data must be sent byte for byte.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::{DaemonSetView, GENERATION_ANNOTATION, HASH_LABEL, owner_reference};
use super::Revision;
use super::name::name;
use crate::rollout::PREFIX;
use crate::rollout::state::Record;

/// The inputs of a new revision.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    pub namespace: &'a str,
    /// The DaemonSet's name.
    pub daemon_set: &'a str,
    /// The DaemonSet's uid.
    pub uid: &'a str,
    /// All annotations of the DaemonSet; the change cause is one of them.
    pub annotations: &'a BTreeMap<String, String>,
    pub template: &'a Value,
    /// From [`of_template`](super::data::of_template).
    pub data: &'a str,
    pub hash: &'a str,
    pub revision: i64,
    /// What it begins with.
    pub record: Option<&'a Record>,
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

/// The body of the request that creates the revision.
pub fn body(parts: Parts<'_>) -> String {
    let data: &RawValue = serde_json::from_str(parts.data).expect("the data of a template is JSON");
    let object = Object {
        api_version: "apps/v1",
        kind: "ControllerRevision",
        metadata: metadata(parts),
        data,
        revision: parts.revision,
    };
    serde_json::to_string(&object).expect("its keys are strings")
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
        "ownerReferences": [owner_reference(parts.daemon_set, parts.uid)],
    });
    // Those of safe rollouts are about the DaemonSet alone (R8.2).
    let copied = parts.annotations.iter();
    let copied = copied.filter(|(key, _)| !key.starts_with(PREFIX));
    let copied = copied.map(|(key, value)| (key.as_str(), value.clone()));
    let record = parts.record.map(Record::annotations).unwrap_or_default();
    let annotations: BTreeMap<&str, String> = copied.chain(record).collect();
    if !annotations.is_empty() {
        metadata["annotations"] = json!(annotations);
    }
    metadata
}

/// The body of the request that creates a revision again, state included (R8.3). Other annotations that it had are lost.
pub fn remade(revision: &Revision, daemon_set: &DaemonSetView, number: i64) -> String {
    let data: &RawValue = serde_json::from_str(&revision.data).expect("canonical data is JSON");
    let mut annotations = revision.record.annotations();
    if let Some(generation) = revision.template_generation {
        annotations.insert(GENERATION_ANNOTATION, generation.to_string());
    }
    let object = Object {
        api_version: "apps/v1",
        kind: "ControllerRevision",
        metadata: json!({
            "name": &*revision.name,
            "namespace": &*revision.namespace,
            "labels": revision.labels,
            "annotations": annotations,
            "ownerReferences": [owner_reference(&daemon_set.name, &daemon_set.uid)],
        }),
        data,
        revision: number,
    };
    serde_json::to_string(&object).expect("its keys are strings")
}

#[cfg(test)]
mod tests {
    use super::super::data::of_template;
    use super::*;

    fn render(template: &Value, annotations: &[(&str, &str)]) -> String {
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
            record: None,
        };
        body(parts)
    }

    #[test]
    fn s4_6_labels_annotations_owner_and_number() {
        let template = json!({"metadata": {"labels": {"app": "x", HASH_LABEL: "user"}}});
        let text = render(&template, &[("kubernetes.io/change-cause", "why")]);
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
    fn r8_2_annotations_of_rollouts_are_not_copied_to_revisions() {
        let cause = ("kubernetes.io/change-cause", "why");
        let ours = [
            ("rollout.kennel.dev/stages", "1, 100%"),
            ("rollout.kennel.dev/abort", "5d8b"),
            ("rollout.kennel.dev/verdict", "stable"),
        ];
        let text = render(&json!({}), &[&[cause][..], &ours].concat());
        let object: Value = serde_json::from_str(&text).unwrap();
        let copied = json!({"kubernetes.io/change-cause": "why"});
        assert_eq!(object["metadata"]["annotations"], copied);
        let object: Value = serde_json::from_str(&render(&json!({}), &ours)).unwrap();
        assert_eq!(object["metadata"]["annotations"], Value::Null);
    }

    #[test]
    fn s4_5_the_data_travels_byte_for_byte() {
        let template = json!({"spec": {"containers": [{"args": ["<&>\u{2028}"]}]}});
        let text = render(&template, &[]);
        let data = of_template(&template);
        assert!(data.contains("\\u003c\\u0026\\u003e\\u2028"), "{data}");
        assert!(text.contains(&format!("\"data\":{data}")), "{text}");
        assert!(!text.contains("annotations"), "{text}");
    }
}
