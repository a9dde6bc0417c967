//! Disruption budgets: how many pods may be evicted now, and whether this one may. The words are upstream's.
//!
//! The disruption controller writes the statuses that its [`Tracker`] asks for. An eviction checks and lowers the status
//! with [`charge`], as one conditional write, so that concurrent evictions cannot exceed a budget together.

mod evict;
mod tracker;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kennel_types::{ConditionStatus, Timestamp};
use serde_json::{Map, Value, json};

use crate::int_or_percent::IntOrPercent;
use crate::selector::Selector;
use crate::tree::{at, list, map, number};

pub use crate::statuses::Status;
pub use evict::{Refusal, charge, is_guarded};
pub use tracker::Tracker;

/// How long an evicted pod counts as gone though it is not deleted yet.
const DELETION_TIMEOUT: Duration = Duration::from_mins(2);

const CONDITION: &str = "DisruptionAllowed";

/// What budgets read of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodFacts {
    pub name: Arc<str>,
    pub labels: BTreeMap<String, String>,
    pub is_ready: bool,
    pub is_deleting: bool,
    /// The uid of the controller that owns it.
    pub controller: Option<Arc<str>>,
}

/// The pods that a budget selects: none without a selector, all with an empty one.
pub fn selector(budget: &Value) -> Selector {
    let selector = Selector::from_object(at(budget, "spec.selector"));
    selector.unwrap_or_else(|_| Selector::nothing())
}

/// The status of a budget over the pods that it selects, and when it changes though no pod does. `scale` says how many
/// pods the controller of this uid wants, if it is known.
pub fn status(
    budget: &Value,
    pods: &[&PodFacts],
    scale: impl Fn(&str) -> Option<i64>,
    now: Timestamp,
) -> (Value, Option<Timestamp>) {
    let counts = match expected(&budget["spec"], pods, scale) {
        Ok(counts) => counts,
        Err(pod) => {
            let why = format!("found no controllers for pod \"{pod}\"");
            return (failed(budget, &why, now), None);
        }
    };
    let (disrupted, recheck) = disrupted(budget, pods, now);
    let is_healthy =
        |pod: &&&PodFacts| pod.is_ready && !pod.is_deleting && !disrupted.contains_key(&*pod.name);
    let healthy = pods.iter().filter(is_healthy).count();
    let healthy = i64::try_from(healthy).unwrap_or(i64::MAX);
    let (expected, desired) = counts;
    let allowed = match expected {
        0 => 0,
        _ => (healthy - desired).max(0),
    };
    let generation = number(budget, "metadata.generation");
    let mut status = json!({
        "currentHealthy": healthy, "desiredHealthy": desired, "expectedPods": expected,
        "disruptionsAllowed": allowed, "observedGeneration": generation,
        "conditions": list(budget, "status.conditions"),
    });
    if !disrupted.is_empty() {
        status["disruptedPods"] = disrupted.into();
    }
    set_condition(&mut status, now);
    (status, recheck)
}

/// How many pods there should be, and how many must stay healthy. The error is a pod without a known controller.
fn expected(
    spec: &Value,
    pods: &[&PodFacts],
    scale: impl Fn(&str) -> Option<i64>,
) -> Result<(i64, i64), Arc<str>> {
    let limit = |field| IntOrPercent::parse(&spec[field]);
    match (limit("maxUnavailable"), limit("minAvailable")) {
        (Some(most), _) => {
            let total = total_scale(pods, scale)?;
            Ok((total, (total - most.of_rounded_up(total)).max(0)))
        }
        (None, Some(IntOrPercent::Int(least))) => {
            Ok((i64::try_from(pods.len()).unwrap_or(i64::MAX), least))
        }
        (None, Some(percent)) => {
            let total = total_scale(pods, scale)?;
            Ok((total, percent.of_rounded_up(total)))
        }
        (None, None) => Ok((0, 0)),
    }
}

/// How many pods the controllers of these pods want. Pods without a controller do not count.
fn total_scale(pods: &[&PodFacts], scale: impl Fn(&str) -> Option<i64>) -> Result<i64, Arc<str>> {
    let mut seen = BTreeSet::new();
    let mut total = 0;
    for pod in pods {
        let Some(controller) = &pod.controller else {
            continue;
        };
        if seen.insert(controller) {
            total += scale(controller).ok_or_else(|| pod.name.clone())?;
        }
    }
    Ok(total)
}

/// The evicted pods that are still there and not being deleted, and when the first of them is given up.
fn disrupted(
    budget: &Value,
    pods: &[&PodFacts],
    now: Timestamp,
) -> (Map<String, Value>, Option<Timestamp>) {
    let before = map(budget, "status.disruptedPods");
    let mut kept = Map::new();
    let mut recheck: Option<Timestamp> = None;
    for pod in pods.iter().filter(|pod| !pod.is_deleting) {
        let Some(time) = before.get(&*pod.name) else {
            continue;
        };
        let evicted = time.as_str().and_then(Timestamp::parse);
        let end = evicted.unwrap_or(Timestamp::MIN) + DELETION_TIMEOUT;
        if end > now {
            kept.insert(pod.name.to_string(), time.clone());
            recheck = Some(recheck.map_or(end, |earlier| earlier.min(end)));
        }
    }
    (kept, recheck)
}

/// The status of a budget that cannot be computed: nothing may be evicted.
fn failed(budget: &Value, why: &str, now: Timestamp) -> Value {
    let mut status = match &budget["status"] {
        Value::Object(_) => budget["status"].clone(),
        _ => json!({"currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}),
    };
    status["disruptionsAllowed"] = 0.into();
    put_condition(
        &mut status,
        (ConditionStatus::False, "SyncFailed", why),
        now,
    );
    status
}

/// Sets the condition that says whether evictions are allowed.
fn set_condition(status: &mut Value, now: Timestamp) {
    let said = if number(status, "disruptionsAllowed") > 0 {
        (ConditionStatus::True, "SufficientPods", "")
    } else {
        (ConditionStatus::False, "InsufficientPods", "")
    };
    put_condition(status, said, now);
}

fn put_condition(
    status: &mut Value,
    (holds, reason, message): (ConditionStatus, &str, &str),
    now: Timestamp,
) {
    let holds = holds.as_str();
    let generation = number(status, "observedGeneration");
    if !status["conditions"].is_array() {
        status["conditions"] = json!([]);
    }
    let conditions = status["conditions"].as_array_mut();
    let conditions = conditions.expect("it was just made a list");
    let at = conditions.iter().position(|one| one["type"] == CONDITION);
    let before = at.map(|at| conditions[at].clone()).unwrap_or_default();
    let since = if before["status"] == holds {
        before["lastTransitionTime"].clone()
    } else {
        now.to_string().into()
    };
    let condition = json!({
        "type": CONDITION, "status": holds, "reason": reason, "message": message,
        "lastTransitionTime": since, "observedGeneration": generation,
    });
    match at {
        Some(at) => conditions[at] = condition,
        None => conditions.push(condition),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str, is_ready: bool) -> PodFacts {
        PodFacts {
            name: name.into(),
            is_ready,
            controller: Some("ds".into()),
            ..PodFacts::default()
        }
    }

    fn check(spec: Value, pods: &[PodFacts], scale: i64, expected: [i64; 4]) {
        let mut budget = json!({"metadata": {"generation": 3}});
        budget["spec"] = spec;
        let pods: Vec<&PodFacts> = pods.iter().collect();
        let (status, _) = status(&budget, &pods, |_| Some(scale), Timestamp::EPOCH);
        let found = [
            "expectedPods",
            "desiredHealthy",
            "currentHealthy",
            "disruptionsAllowed",
        ]
        .map(|field| status[field].as_i64().unwrap());
        assert_eq!(found, expected, "{budget}");
        assert_eq!(status["observedGeneration"], 3);
        let condition = &status["conditions"][0];
        assert_eq!(condition["status"] == "True", expected[3] > 0, "{status}");
    }

    #[test]
    fn budgets_are_counts_or_percentages_of_what_controllers_want() {
        let three = [pod("a", true), pod("b", true), pod("c", false)];
        check(json!({"minAvailable": 1}), &three, 9, [3, 1, 2, 1]);
        check(json!({"minAvailable": 2}), &three, 9, [3, 2, 2, 0]);
        check(json!({"minAvailable": "50%"}), &three, 3, [3, 2, 2, 0]);
        check(json!({"maxUnavailable": 2}), &three, 3, [3, 1, 2, 1]);
        check(json!({"maxUnavailable": "30%"}), &three, 4, [4, 2, 2, 0]);
        check(json!({"maxUnavailable": "100%"}), &three, 3, [3, 0, 2, 2]);
        check(json!({"maxUnavailable": 5}), &[], 0, [0, 0, 0, 0]);
    }

    #[test]
    fn deleted_and_evicted_pods_are_not_healthy() {
        let mut going = pod("going", true);
        going.is_deleting = true;
        let pods = [pod("a", true), pod("b", true), going];
        let pods: Vec<&PodFacts> = pods.iter().collect();
        let budget = json!({"spec": {"minAvailable": 1}, "status": {"disruptedPods": {
            "b": "1970-01-01T00:00:00Z", "going": "1970-01-01T00:00:00Z", "gone": "1970-01-01T00:00:00Z"}}});
        let at = |now| status(&budget, &pods, |_| None, now);
        let (early, recheck) = at(Timestamp::from_secs(1));
        assert_eq!(early["currentHealthy"], 1);
        assert_eq!(early["disruptedPods"], json!({"b": "1970-01-01T00:00:00Z"}));
        // A pod that was not deleted after all counts again.
        let (late, _) = at(recheck.unwrap());
        assert_eq!(late["currentHealthy"], 2);
        assert_eq!(late["disruptedPods"], Value::Null);
    }

    #[test]
    fn without_a_known_controller_nothing_is_allowed() {
        let pods = [pod("a", true)];
        let pods: Vec<&PodFacts> = pods.iter().collect();
        let budget = json!({"spec": {"maxUnavailable": 1}});
        let (status, _) = status(&budget, &pods, |_| None, Timestamp::EPOCH);
        assert_eq!(status["disruptionsAllowed"], 0);
        let condition = &status["conditions"][0];
        assert_eq!(condition["reason"], "SyncFailed");
        assert_eq!(condition["message"], "found no controllers for pod \"a\"");
    }
}
