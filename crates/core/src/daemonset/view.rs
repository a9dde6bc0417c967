//! What the planner knows of the world: the few fields of each object that its rules read.
//!
//! Views are cheap to build from API objects and cheap to keep; they decide nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::status::Counters;
use crate::affinity::NAME_FIELD;
use crate::int_or_percent::IntOrPercent;
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
    /// How a new template reaches the nodes.
    pub strategy: Strategy,
    /// How many old revisions to keep.
    pub revision_history_limit: i64,
    /// All annotations: new revisions get them (rule 4.6).
    pub annotations: Arc<BTreeMap<String, String>>,
    /// The resource version as a number; 0 if it is none. Tells old news from new.
    pub version: u64,
}

/// How a new template reaches the nodes (`spec.updateStrategy`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// When their pods are deleted by somebody else.
    OnDelete,
    /// By and by. A limit that cannot be read is `None`, and stops the rollout (rule 5.1.2).
    RollingUpdate {
        /// How many nodes may be without an available pod.
        max_unavailable: Option<IntOrPercent>,
        /// How many nodes may have an old and a new pod.
        max_surge: Option<IntOrPercent>,
    },
}

impl Strategy {
    /// Reads `spec.updateStrategy`, with the API's defaults for what is absent.
    pub fn parse(strategy: &Value) -> Self {
        let limit = |name: &str, default: i64| match &strategy["rollingUpdate"][name] {
            Value::Null => Some(IntOrPercent::Int(default)),
            value => IntOrPercent::parse(value),
        };
        match strategy["type"].as_str() {
            Some("RollingUpdate" | "") | None => Self::RollingUpdate {
                max_unavailable: limit("maxUnavailable", 1),
                max_surge: limit("maxSurge", 0),
            },
            Some(_) => Self::OnDelete,
        }
    }

    /// May a node have an old and a new pod at once (the S of rule 3.4)?
    pub fn surges(self) -> bool {
        let Self::RollingUpdate { max_surge, .. } = self else {
            return false;
        };
        max_surge.is_some_and(|surge| surge.of_rounded_up(1) > 0)
    }
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
    /// The uid of the DaemonSet that is its controller; none if it has no controller at all.
    pub controller: Option<Arc<str>>,
    /// Labels. Shared, since most pods have the same as many others.
    pub labels: Arc<BTreeMap<String, String>>,
    /// The node it is bound to.
    pub bound_to: Option<Arc<str>>,
    /// The node its affinity names, while it is not bound (rule 2.6).
    pub pinned_to: Option<Arc<str>>,
    /// When it was created.
    pub created: Seconds,
    /// Being deleted.
    pub terminating: bool,
    /// How far its life has come.
    pub phase: Phase,
    /// Since when it is ready, if it is.
    pub ready_since: Option<Seconds>,
}

/// The phases that the rules tell apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Pending, running, or unknown.
    #[default]
    Active,
    /// `Failed`.
    Failed,
    /// `Succeeded`.
    Succeeded,
}

impl PodView {
    /// Has it ended by itself?
    pub fn terminal(&self) -> bool {
        self.phase != Phase::Active
    }

    /// Shares what is equal with another pod, to save memory.
    pub(super) fn share(&mut self, other: &Self) {
        let share = |mine: &mut Option<Arc<str>>, theirs: &Option<Arc<str>>| {
            if mine == theirs {
                mine.clone_from(theirs);
            }
        };
        share(&mut self.controller, &other.controller);
        share(&mut self.bound_to, &other.bound_to);
        share(&mut self.pinned_to, &other.pinned_to);
        if self.namespace == other.namespace {
            self.namespace = other.namespace.clone();
        }
        if self.name == other.name {
            self.name = other.name.clone();
        }
        if self.uid == other.uid {
            self.uid = other.uid.clone();
        }
        if self.labels == other.labels {
            self.labels = other.labels.clone();
        }
    }

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
