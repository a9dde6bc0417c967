//! Views: the fields of DaemonSets, nodes and pods that the planner reads.

use std::collections::BTreeMap;
use std::sync::Arc;

use kennel_types::Timestamp;
pub use kennel_types::Waiting;
use serde_json::Value;

use super::status::Counters;
use crate::affinity::NAME_FIELD;
use crate::int_or_percent::IntOrPercent;
use crate::rollout::condition::Conditions;
use crate::selector::Selector;
use crate::taint::Taint;

#[derive(Clone, Debug, PartialEq)]
pub struct DaemonSetView {
    pub namespace: Arc<str>,
    pub name: Arc<str>,
    pub uid: Arc<str>,
    pub generation: i64,
    /// Generation of the template, from its annotation.
    pub template_generation: Option<i64>,
    /// Being deleted: the planner does nothing for it.
    pub terminating: bool,
    pub selector: Selector,
    /// The pod template as the API sent it, unknown fields included.
    pub template: Arc<Value>,
    pub min_ready_seconds: i64,
    /// How often a revision's name was taken; an input of the template's hash.
    pub collision_count: Option<i64>,
    /// The status that the API has.
    pub status: Counters,
    /// Those conditions of the status that are ours.
    pub conditions: Arc<Conditions>,
    pub strategy: Strategy,
    pub revision_history_limit: i64,
    /// All annotations: new revisions get them (rule 4.6).
    pub annotations: Arc<BTreeMap<String, String>>,
    /// The resource version; 0 if it is not a number. Used to detect views older than our last status write.
    pub version: u64,
}

/// `spec.updateStrategy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    OnDelete {
        /// Upstream ignores it; with `kennel controller --assist` it is the budget (R11). `None` if it cannot be read.
        max_unavailable: Option<IntOrPercent>,
    },
    /// A limit that cannot be read is `None` and stops the rollout (rule 5.1.2).
    RollingUpdate {
        max_unavailable: Option<IntOrPercent>,
        max_surge: Option<IntOrPercent>,
    },
}

impl Strategy {
    /// Without limits.
    #[cfg(test)]
    pub(super) const ON_DELETE: Self = Self::OnDelete {
        max_unavailable: Some(IntOrPercent::Int(1)),
    };

    /// Parses `spec.updateStrategy` and applies the API's defaults.
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
            Some(_) => Self::OnDelete {
                max_unavailable: limit("maxUnavailable", 1),
            },
        }
    }

    pub fn is_on_delete(self) -> bool {
        matches!(self, Self::OnDelete { .. })
    }

    /// Whether a node may have an old and a new pod at once (the S of rule 3.4).
    pub fn surges(self) -> bool {
        let Self::RollingUpdate { max_surge, .. } = self else {
            return false;
        };
        max_surge.is_some_and(|surge| surge.of_rounded_up(1) > 0)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeView {
    pub name: Arc<str>,
    pub labels: BTreeMap<String, String>,
    pub taints: Vec<Taint>,
    /// Cordoned. The scheduler reads it, and safe rollouts (R4.2); upstream's rules do not (rule 2.1.2).
    pub unschedulable: bool,
    /// Only safe rollouts read it (R4).
    pub ready: Readiness,
    /// When `ready` became what it is. It tells a new controller when a node went down (R4.2).
    pub ready_changed: Option<Timestamp>,
}

/// The status of a node's `Ready` condition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Readiness {
    #[default]
    Ready,
    NotReady,
    /// The kubelet does not report.
    Unknown,
}

/// A ConfigMap of a namespace in which config is pinned (R10).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigMapView {
    pub namespace: Arc<str>,
    pub name: Arc<str>,
    /// From [`content_hash`](crate::rollout::config::content_hash).
    pub hash: Arc<str>,
    /// The uid of the ControllerRevision that is its controller.
    pub owner: Option<Arc<str>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodView {
    pub namespace: Arc<str>,
    pub name: Arc<str>,
    pub uid: Arc<str>,
    /// The uid of the DaemonSet that is its controller; `None` if it has no controller.
    pub controller: Option<Arc<str>>,
    /// Shared, because most pods have the same labels as many others.
    pub labels: Arc<BTreeMap<String, String>>,
    pub bound_to: Option<Arc<str>>,
    /// The node that its affinity names, while it is not bound (rule 2.6).
    pub pinned_to: Option<Arc<str>>,
    pub created: Timestamp,
    pub terminating: bool,
    pub phase: Phase,
    /// `None` if it is not ready; `Timestamp::MAX` if it is and its Ready condition has no time.
    pub ready_since: Option<Timestamp>,
    /// Only safe rollouts read it (R5).
    pub health: Health,
}

/// What safe rollouts judge a pod by, beside its phase and readiness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Restarts of the container that was restarted most often.
    pub restarts: u32,
    pub waiting: Waiting,
    /// From the pod's annotation.
    pub before: Before,
}

/// What a node's daemon was when a pod of a staged rollout was created (R5.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Before {
    /// There was none, or the pod has no such annotation.
    #[default]
    None,
    Available,
    Failing,
    /// The node was not ready.
    Down,
}

impl Before {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Available => "available",
            Self::Failing => "failing",
            Self::Down => "down",
        }
    }

    pub fn parse(text: &str) -> Self {
        let all = [Self::Available, Self::Failing, Self::Down];
        let found = all.into_iter().find(|before| before.as_str() == text);
        found.unwrap_or_default()
    }
}

/// The pod phases that the rules distinguish.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Pending, running, or unknown.
    #[default]
    Active,
    Failed,
    Succeeded,
}

impl PodView {
    pub fn terminal(&self) -> bool {
        self.phase != Phase::Active
    }

    /// Replaces strings by equal ones of another pod, to save memory.
    pub(super) fn share_strings(&mut self, other: &Self) {
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

    /// The sort key of a node's pods: bound first, then the oldest, then by name (rules 3.4.2 and 6.1.1).
    pub fn seniority(&self) -> impl Ord + '_ {
        (self.bound_to.is_none(), self.created, &self.name)
    }

    /// When it becomes or became available, if it is ready (rule 5.3.1).
    pub fn available_at(&self, min_ready_seconds: i64) -> Option<Timestamp> {
        self.ready_since.map(|since| match min_ready_seconds {
            0 => Timestamp::MIN,
            seconds => since.saturating_add_millis(seconds.saturating_mul(1000)),
        })
    }
}

/// The node that required node affinity names (rule 2.6.1): the value of the first `metadata.name In` entry, if it has
/// exactly one.
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
