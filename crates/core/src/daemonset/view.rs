//! What the planner knows of the world: the few fields of each object that its rules read.
//!
//! Views are cheap to build from API objects and cheap to keep; they decide nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::status::Counters;
use crate::affinity::NAME_FIELD;
use crate::selector::Selector;
use crate::taint::Taint;

/// Seconds since the epoch, as API objects carry them.
pub type Seconds = i64;

/// A DaemonSet.
#[derive(Clone, Debug, PartialEq)]
pub struct DaemonSetView {
    /// Namespace.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// Which of all objects that ever had this name it is.
    pub uid: Arc<str>,
    /// Generation of the spec.
    pub generation: i64,
    /// Generation of the template, from its annotation.
    pub template_generation: Option<i64>,
    /// Being deleted: nothing is done for it any more.
    pub terminating: bool,
    /// Which pods are its own, beside the owner reference.
    pub selector: Selector,
    /// The pod template as the API gave it, unknown fields included.
    pub template: Arc<Value>,
    /// How long a pod must be ready to count as available.
    pub min_ready_seconds: i64,
    /// How often a revision's name was taken: part of the template's hash.
    pub collision_count: Option<i64>,
    /// What the API has as status.
    pub status: Counters,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeView {
    /// Name.
    pub name: Arc<str>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// What repels pods.
    pub taints: Vec<Taint>,
    /// Cordoned. The planner does not look at it (rule 2.1.2); a scheduler does.
    pub unschedulable: bool,
}

/// A pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodView {
    /// Namespace.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// Which of all objects that ever had this name it is.
    pub uid: Arc<str>,
    /// The uid of the controller that owns it.
    pub controller: Option<Arc<str>>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// The node it is bound to.
    pub bound_to: Option<Arc<str>>,
    /// The node its affinity names, while it is not bound (rule 2.6).
    pub pinned_to: Option<Arc<str>>,
    /// When it was created.
    pub created: Seconds,
    /// Being deleted.
    pub terminating: bool,
    /// Phase is `Failed` or `Succeeded`.
    pub terminal: bool,
    /// Since when it is ready, if it is.
    pub ready_since: Option<Seconds>,
}

impl PodView {
    /// The node this pod is or will be on (rule 2.6.1).
    pub fn target(&self) -> Option<&Arc<str>> {
        self.bound_to.as_ref().or(self.pinned_to.as_ref())
    }

    /// Order in which pods of one node represent it or are kept: bound first, then the oldest, then
    /// by name (rules 3.4.2 and 6.1.1).
    pub fn seniority(&self) -> impl Ord + '_ {
        (self.bound_to.is_none(), self.created, &self.name)
    }

    /// When it becomes or became available, if it is ready (rule 5.3.1).
    pub fn available_at(&self, min_ready_seconds: i64) -> Option<Seconds> {
        self.ready_since.map(|since| match min_ready_seconds {
            0 => Seconds::MIN,
            wait => since.saturating_add(wait),
        })
    }
}

/// The node that required node affinity names (rule 2.6.1): the first `metadata.name In` entry
/// decides, and has exactly one value or none counts.
pub fn pinned_node(required: &Value) -> Option<&str> {
    let terms = required.get("nodeSelectorTerms")?.as_array()?;
    let fields = terms
        .iter()
        .filter_map(|term| term.get("matchFields")?.as_array())
        .flatten();
    let by_name = |field: &&Value| {
        field.get("key").and_then(Value::as_str) == Some(NAME_FIELD)
            && field.get("operator").and_then(Value::as_str) == Some("In")
    };
    match fields
        .into_iter()
        .find(by_name)?
        .get("values")?
        .as_array()?
        .as_slice()
    {
        [Value::String(name)] => Some(name),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(terms: &Value, expected: Option<&str>) {
        let required = json!({ "nodeSelectorTerms": terms });
        assert_eq!(pinned_node(&required), expected, "{terms}");
    }

    #[test]
    fn s2_6_1_target_of_an_unbound_pod() {
        let field =
            |values: &[&str]| json!({"key": NAME_FIELD, "operator": "In", "values": values});
        check(&json!([{"matchFields": [field(&["n1"])]}]), Some("n1"));
        check(&json!([{}, {"matchFields": [field(&["n2"])]}]), Some("n2"));
        check(
            &json!([{"matchFields": [field(&["n1", "n2"]), field(&["n3"])]}]),
            None,
        );
        check(
            &json!([{"matchFields": [{"key": NAME_FIELD, "operator": "NotIn", "values": ["n1"]}]}]),
            None,
        );
        check(&json!([{"matchExpressions": [field(&["n1"])]}]), None);
        check(&json!([]), None);
    }
}
