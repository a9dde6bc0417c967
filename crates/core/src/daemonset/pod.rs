//! The pod that a DaemonSet creates on a node (rule 3.9).
//!
//! All but the names is the same on all nodes, so the JSON is rendered once per template with placeholders that are
//! replaced for each node.

use serde_json::{Map, Value, json};

use super::fit::daemon_tolerations;
use super::view::{Before, DaemonSetView, PodView};
use super::{GENERATION_LABEL, HASH_LABEL, owner_reference};
use crate::affinity::NAME_FIELD;
use crate::rollout::BEFORE;
use crate::rollout::config::pod_template;

/// How a pod is placed on its node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// Node affinity names the node, and a scheduler binds the pod (rule 2.5).
    #[default]
    Scheduler,
    /// `spec.nodeName` names the node as well, so that no scheduler is needed.
    Direct,
}

/// What the pods of all DaemonSets get beside their template.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Additions {
    pub placement: Placement,
    /// Some DaemonSet is required, so that its taint is tolerated (R12.2).
    pub some_required: bool,
}

impl From<Placement> for Additions {
    fn from(placement: Placement) -> Self {
        Self {
            placement,
            some_required: false,
        }
    }
}

/// The JSON of one DaemonSet's pods, without the names of pod and node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blueprint {
    hash: String,
    /// The JSON of the request, cut at the placeholders.
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// The member `name` of the pod's metadata goes here.
    PodName,
    /// The name of the node goes here.
    NodeName,
    /// What the node's daemon was goes here.
    Before,
}

impl Blueprint {
    /// Renders the pods of a DaemonSet's current template (rules 3.9, 2.3 and 2.5).
    pub fn new(daemon_set: &DaemonSetView, hash: &str, additions: Additions) -> Self {
        Self::render(daemon_set, hash, additions, false)
    }

    /// The same for a DaemonSet with a rollout policy: the pods carry what their node's daemon was (R5.5).
    pub fn staged(daemon_set: &DaemonSetView, hash: &str, additions: Additions) -> Self {
        Self::render(daemon_set, hash, additions, true)
    }

    fn render(daemon_set: &DaemonSetView, hash: &str, additions: Additions, staged: bool) -> Self {
        let template = &*pod_template(&daemon_set.template, hash);
        let mut spec = object(template.get("spec"));
        let tolerations = daemon_tolerations(&Value::Object(spec.clone()), additions.some_required);
        spec.insert("tolerations".into(), json!(tolerations));
        let text = template.to_string();
        let (pod_name, node_name) = (placeholder(&text, "pod"), placeholder(&text, "node"));
        pin(&mut spec, &node_name);
        let named = spec.get("nodeName").and_then(Value::as_str);
        if additions.placement == Placement::Direct && named.is_none_or(str::is_empty) {
            spec.insert("nodeName".into(), node_name.clone().into());
        }
        let before = placeholder(&text, "before");
        let mut metadata = metadata(daemon_set, template, hash, &pod_name);
        if staged {
            metadata["annotations"][BEFORE] = before.clone().into();
        }
        let pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": spec,
        });
        Self {
            hash: hash.to_owned(),
            pieces: pieces(&pod.to_string(), &pod_name, &node_name, &before),
        }
    }

    /// The hash label of its pods.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// The body of the request that creates the pod for a node. Without a name, the server generates one.
    pub fn pod(&self, node: &str, name: Option<&str>, before: Before) -> String {
        let node = Value::from(node).to_string();
        let name = name.map(name_member).unwrap_or_default();
        let pieces = self.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => text.as_str(),
            Piece::PodName => &name,
            Piece::NodeName => &node,
            Piece::Before => before.as_str(),
        });
        let mut body = String::with_capacity(pieces.clone().map(str::len).sum());
        body.extend(pieces);
        body
    }
}

/// A placeholder for a name that does not occur in the template.
fn placeholder(template: &str, of: &str) -> String {
    let mut placeholder = format!("<{of}>");
    while template.contains(&placeholder) {
        placeholder.push('>');
    }
    placeholder
}

/// The member `name` of an object. Others follow it: `namespace` at least.
fn name_member(name: &str) -> String {
    format!("\"name\":{},", Value::from(name))
}

/// Cuts the JSON of a pod at its placeholders.
fn pieces(json: &str, pod_name: &str, node_name: &str, before: &str) -> Vec<Piece> {
    let (pod_name, node_name) = (name_member(pod_name), Value::from(node_name).to_string());
    debug_assert!(json.contains(&pod_name), "the metadata has a name");
    let mut pieces = Vec::new();
    for (index, part) in json.split(&pod_name).enumerate() {
        if index > 0 {
            pieces.push(Piece::PodName);
        }
        for (index, text) in part.split(&node_name).enumerate() {
            if index > 0 {
                pieces.push(Piece::NodeName);
            }
            for (index, text) in text.split(before).enumerate() {
                if index > 0 {
                    pieces.push(Piece::Before);
                }
                pieces.push(Piece::Text(text.to_owned()));
            }
        }
    }
    pieces
}

/// Whether the pod comes from the current template (rule 5.2.1).
pub fn is_updated(pod: &PodView, hash: &str, template_generation: Option<i64>) -> bool {
    let label = |key: &str| pod.labels.get(key).map(String::as_str);
    let generation = template_generation.map(|g| g.to_string());
    (!hash.is_empty() && label(HASH_LABEL) == Some(hash))
        || (generation.is_some() && label(GENERATION_LABEL) == generation.as_deref())
}

fn object(value: Option<&Value>) -> Map<String, Value> {
    value
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default()
}

fn metadata(daemon_set: &DaemonSetView, template: &Value, hash: &str, name: &str) -> Value {
    let template = object(template.get("metadata"));
    let mut labels = object(template.get("labels"));
    labels.insert(HASH_LABEL.into(), hash.into());
    if let Some(generation) = daemon_set.template_generation {
        labels.insert(GENERATION_LABEL.into(), generation.to_string().into());
    }
    let mut metadata = json!({
        "name": name,
        "generateName": format!("{}-", daemon_set.name),
        "namespace": &*daemon_set.namespace,
        "labels": labels,
        "ownerReferences": [owner_reference(&daemon_set.name, &daemon_set.uid)],
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
    use super::super::fixtures::{daemon_set, pod};
    use super::*;
    use std::sync::Arc;

    fn made(template: Value, placement: Placement) -> Value {
        let mut view = daemon_set("ds");
        view.template = Arc::new(template);
        let text = Blueprint::new(&view, "abc", placement.into()).pod("n1", None, Before::None);
        serde_json::from_str(&text).unwrap()
    }

    fn built(template: Value) -> Value {
        made(template, Placement::Scheduler)
    }

    #[test]
    fn s3_9_2_to_4_metadata_comes_from_the_template_alone() {
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
    fn s3_12_5_controller_labels_in_the_template_are_overwritten() {
        let pod = built(json!({"metadata": {"labels":
            {HASH_LABEL: "user", GENERATION_LABEL: "user"}}}));
        assert_eq!(
            pod["metadata"]["labels"],
            json!({HASH_LABEL: "abc", GENERATION_LABEL: "1"})
        );
    }

    #[test]
    fn s3_9_1_the_name_is_left_to_the_server() {
        let pod = built(json!({}));
        assert_eq!(pod["metadata"]["generateName"], "ds-");
        assert_eq!(pod["metadata"].get("name"), None);
    }

    #[test]
    fn a_name_goes_into_the_pods_own_metadata() {
        let template = json!({"spec": {"volumes": [{"metadata": {"name": "<pod>"}}]}});
        let mut view = daemon_set("ds");
        view.template = Arc::new(template.clone());
        let blueprint = Blueprint::new(&view, "abc", Additions::default());
        let pod: Value =
            serde_json::from_str(&blueprint.pod("n1", Some("ds-abcde"), Before::None)).unwrap();
        assert_eq!(pod["metadata"]["name"], "ds-abcde");
        assert_eq!(pod["metadata"]["generateName"], "ds-");
        assert_eq!(pod["spec"]["volumes"], template["spec"]["volumes"]);
    }

    #[test]
    fn s3_9_5_the_spec_is_the_templates_with_pin_and_tolerations() {
        let pod = built(json!({"spec": {"containers": [{"name": "c"}], "unknown": {"a": 1}}}));
        assert_eq!(pod["spec"]["containers"], json!([{"name": "c"}]));
        assert_eq!(pod["spec"]["unknown"], json!({"a": 1}));
        assert_eq!(pod["spec"]["tolerations"].as_array().unwrap().len(), 6);
    }

    #[test]
    fn s2_5_1_pods_are_created_unbound() {
        assert_eq!(built(json!({}))["spec"].get("nodeName"), None);
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
    fn s2_5_3_other_affinity_is_kept_and_missing_parents_are_made() {
        let pod = built(json!({"spec": {"affinity": {"podAffinity": {"y": 2}},
                                        "topologySpreadConstraints": [{"maxSkew": 1}]}}));
        assert_eq!(pod["spec"]["affinity"]["podAffinity"], json!({"y": 2}));
        assert_eq!(
            pod["spec"]["topologySpreadConstraints"],
            json!([{"maxSkew": 1}])
        );
        let bare = built(json!({"spec": {}}));
        let terms = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution";
        assert!(bare.pointer(terms).is_some());
    }

    #[test]
    fn s2_5_4_the_template_node_name_is_kept_beside_the_affinity() {
        for placement in [Placement::Scheduler, Placement::Direct] {
            let pod = made(json!({"spec": {"nodeName": "own"}}), placement);
            assert_eq!(pod["spec"]["nodeName"], "own");
            assert!(pod["spec"]["affinity"]["nodeAffinity"].is_object());
        }
    }

    #[test]
    fn direct_placement_names_the_node() {
        let pod = made(json!({"spec": {"a": "<node>"}}), Placement::Direct);
        assert_eq!(pod["spec"]["nodeName"], "n1");
        assert_eq!(pod["spec"]["a"], "<node>");
    }

    #[test]
    fn s2_3_1_created_pods_get_the_automatic_tolerations() {
        let pod = built(json!({"spec": {}}));
        assert_eq!(
            pod["spec"]["tolerations"][0],
            json!({"key": "node.kubernetes.io/not-ready", "operator": "Exists",
                   "effect": "NoExecute"})
        );
    }

    #[test]
    fn s5_2_1_updated_by_hash_or_by_generation() {
        let check = |hash: &str, generation: &str, expected: bool| {
            let mut view = pod("p", "ds", "n1");
            view.labels = Arc::new(
                [(HASH_LABEL, hash), (GENERATION_LABEL, generation)]
                    .map(|(key, value)| (key.to_owned(), value.to_owned()))
                    .into(),
            );
            assert_eq!(is_updated(&view, "new", Some(2)), expected);
        };
        check("new", "1", true);
        check("old", "2", true);
        check("old", "1", false);
        let mut bare = pod("p", "ds", "n1");
        bare.labels = Arc::default();
        assert!(!is_updated(&bare, "", None));
    }
}
