//! The pod that a DaemonSet wants on a node, and the hash that names its template.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::fit::daemon_tolerations;
use super::view::{DaemonSetView, PodView};
use super::{GENERATION_LABEL, HASH_LABEL};
use crate::affinity::NAME_FIELD;

/// Stands for the digits 0 to 9 in a hash: neither vowels nor digits that look like letters.
const LETTERS: &[u8; 10] = b"456789bcdf";

/// A short name for a template: the same for the same template, safe in names and labels.
///
/// The value is opaque: other controllers hash differently, and identity is decided by the
/// template itself.
pub fn template_hash(template: &Value, collision_count: Option<i64>) -> String {
    let mut hasher = Sha256::new();
    hasher.update(template.to_string());
    if let Some(count) = collision_count {
        hasher.update(count.to_le_bytes());
    }
    let digest = hasher.finalize();
    let number = u32::from_le_bytes([digest[0], digest[1], digest[2], digest[3]]);
    let digits = number.to_string().into_bytes();
    let letter = |digit: u8| char::from(LETTERS[usize::from(digit - b'0')]);
    digits.into_iter().map(letter).collect()
}

/// Does the pod come from the present template (rule 5.2.1)?
pub fn is_updated(pod: &PodView, hash: &str, template_generation: Option<i64>) -> bool {
    let label = |key: &str| pod.labels.get(key).map(String::as_str);
    let generation = template_generation.map(|g| g.to_string());
    (!hash.is_empty() && label(HASH_LABEL) == Some(hash))
        || (generation.is_some() && label(GENERATION_LABEL) == generation.as_deref())
}

/// The pod to create on a node (rules 3.9, 2.3 and 2.5).
pub fn build(daemon_set: &DaemonSetView, hash: &str, node: &str) -> Value {
    let template = &daemon_set.template;
    let mut spec = object(template.get("spec"));
    let tolerations = daemon_tolerations(&Value::Object(spec.clone()));
    spec.insert("tolerations".into(), json!(tolerations));
    pin(&mut spec, node);
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata(daemon_set, hash),
        "spec": spec,
    })
}

fn object(value: Option<&Value>) -> Map<String, Value> {
    value
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default()
}

fn metadata(daemon_set: &DaemonSetView, hash: &str) -> Value {
    let template = object(daemon_set.template.get("metadata"));
    let mut labels = object(template.get("labels"));
    labels.insert(HASH_LABEL.into(), hash.into());
    if let Some(generation) = daemon_set.template_generation {
        labels.insert(GENERATION_LABEL.into(), generation.to_string().into());
    }
    let mut metadata = json!({
        "generateName": format!("{}-", daemon_set.name),
        "namespace": &*daemon_set.namespace,
        "labels": labels,
        "ownerReferences": [{
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "name": &*daemon_set.name,
            "uid": &*daemon_set.uid,
            "controller": true,
            "blockOwnerDeletion": true,
        }],
    });
    for copied in ["annotations", "finalizers"] {
        if let Some(value) = template.get(copied) {
            metadata[copied] = value.clone();
        }
    }
    metadata
}

/// Replaces required node affinity by the one term that names the node (rule 2.5.2).
fn pin(spec: &mut Map<String, Value>, node: &str) {
    let mut affinity = object(spec.get("affinity"));
    let mut node_affinity = object(affinity.get("nodeAffinity"));
    node_affinity.insert(
        "requiredDuringSchedulingIgnoredDuringExecution".into(),
        json!({"nodeSelectorTerms": [{"matchFields": [
            {"key": NAME_FIELD, "operator": "In", "values": [node]}]}]}),
    );
    affinity.insert("nodeAffinity".into(), Value::Object(node_affinity));
    spec.insert("affinity".into(), Value::Object(affinity));
}

#[cfg(test)]
mod tests {
    use super::super::plan::fixtures::daemon_set;
    use super::*;
    use std::sync::Arc;

    fn built(template: Value) -> Value {
        let mut view = daemon_set("ds");
        view.template = Arc::new(template);
        build(&view, "abc", "n1")
    }

    #[test]
    fn s3_9_metadata_comes_from_the_template_alone() {
        let pod = built(json!({
            "metadata": {"labels": {"app": "x", HASH_LABEL: "user"}, "annotations": {"a": "b"},
                         "finalizers": ["f/f"], "name": "ignored"},
            "spec": {}}));
        assert_eq!(
            pod["metadata"],
            json!({
                "generateName": "ds-", "namespace": "default",
                "labels": {"app": "x", HASH_LABEL: "abc", GENERATION_LABEL: "1"},
                "annotations": {"a": "b"}, "finalizers": ["f/f"],
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "ds",
                    "uid": "uid-ds", "controller": true, "blockOwnerDeletion": true}]})
        );
    }

    #[test]
    fn s2_5_2_required_affinity_is_replaced_and_the_rest_kept() {
        let pod = built(json!({"spec": {"nodeSelector": {"a": "b"}, "affinity": {
            "podAntiAffinity": {"x": 1},
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}],
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}]}}}}}));
        assert_eq!(
            pod["spec"]["affinity"],
            json!({"podAntiAffinity": {"x": 1}, "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}],
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                    {"matchFields": [{"key": "metadata.name", "operator": "In",
                                      "values": ["n1"]}]}]}}})
        );
        assert_eq!(pod["spec"]["nodeSelector"], json!({"a": "b"}));
    }

    #[test]
    fn s2_5_4_the_template_node_name_is_kept_and_tolerations_added() {
        let pod = built(json!({"spec": {"nodeName": "n1"}}));
        assert_eq!(pod["spec"]["nodeName"], "n1");
        assert_eq!(
            pod["spec"]["tolerations"][0],
            json!({"key": "node.kubernetes.io/not-ready", "operator": "Exists",
                   "effect": "NoExecute"})
        );
    }

    #[test]
    fn s4_6_1_the_hash_depends_on_template_and_collisions_only() {
        let one = json!({"spec": {"a": 1}});
        let hash = template_hash(&one, None);
        assert_eq!(hash, template_hash(&one.clone(), None));
        assert_ne!(hash, template_hash(&one, Some(1)));
        assert_ne!(hash, template_hash(&json!({"spec": {"a": 2}}), None));
        assert!(!hash.is_empty() && hash.len() <= 10);
        assert!(hash.chars().all(|c| "456789bcdf".contains(c)), "{hash}");
    }

    #[test]
    fn s5_2_1_updated_by_hash_or_by_generation() {
        use super::super::plan::fixtures::pod;
        let check = |hash: &str, generation: &str, expected: bool| {
            let mut view = pod("p", "ds", "n1");
            view.labels.insert(HASH_LABEL.into(), hash.into());
            view.labels
                .insert(GENERATION_LABEL.into(), generation.into());
            assert_eq!(is_updated(&view, "new", Some(2)), expected);
        };
        check("new", "1", true);
        check("old", "2", true);
        check("old", "1", false);
        let mut bare = pod("p", "ds", "n1");
        bare.labels.clear();
        assert!(!is_updated(&bare, "", None));
    }
}
