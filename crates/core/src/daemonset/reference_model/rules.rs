//! The rules as plain functions of whole objects, written a second time straight from the spec.
//!
//! Nothing here may call the planner's version: a mistake there has to show as a difference.

use kennel_types::Timestamp;
use serde_json::Value;

use super::super::view::{NodeView, PodView, Strategy};
use super::super::{GENERATION_LABEL, HASH_LABEL};
use crate::int_or_percent::IntOrPercent;
use crate::taint::Taint;

/// Rule 2.2: (shouldRun, shouldContinueRunning).
pub(super) fn eligibility(template: &Value, node: &NodeView) -> (bool, bool) {
    let spec = &template["spec"];
    // 2.2.1
    let node_name = spec["nodeName"].as_str().unwrap_or_default();
    if !node_name.is_empty() && node_name != &*node.name {
        return (false, false);
    }
    // 2.2.2
    for (key, value) in spec["nodeSelector"].as_object().into_iter().flatten() {
        if node.labels.get(key).map(String::as_str) != value.as_str() {
            return (false, false);
        }
    }
    // 2.2.3
    let required =
        &spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    if !required.is_null() {
        let terms = required["nodeSelectorTerms"].as_array().unwrap();
        if !terms.iter().any(|term| term_matches(term, node)) {
            return (false, false);
        }
    }
    // 2.2.4 and 2.2.5
    let tolerations = tolerations(spec);
    let untolerated = |effect: &str| {
        let mut taints = node
            .taints
            .iter()
            .filter(|taint| taint.effect.as_str() == effect);
        taints.any(|taint| !tolerations.iter().any(|t| tolerates(t, taint)))
    };
    let keep = !untolerated("NoExecute");
    (keep && !untolerated("NoSchedule"), keep)
}

/// Only the operators that the random histories use.
fn term_matches(term: &Value, node: &NodeView) -> bool {
    let fields = term["matchFields"].as_array().into_iter().flatten();
    let expressions = term["matchExpressions"].as_array().into_iter().flatten();
    let values = |requirement: &Value| requirement["values"].as_array().unwrap().clone();
    let mut count = 0;
    for field in fields {
        count += 1;
        assert_eq!(
            (&field["key"], &field["operator"]),
            (&"metadata.name".into(), &"In".into())
        );
        if !values(field).contains(&(&*node.name).into()) {
            return false;
        }
    }
    for expression in expressions {
        count += 1;
        let label = node.labels.get(expression["key"].as_str().unwrap());
        let listed = |label: &String| values(expression).contains(&label.as_str().into());
        let holds = match expression["operator"].as_str().unwrap() {
            "In" => label.is_some_and(listed),
            "NotIn" => !label.is_some_and(listed),
            "Exists" => label.is_some(),
            "DoesNotExist" => label.is_none(),
            other => panic!("{other}"),
        };
        if !holds {
            return false;
        }
    }
    count > 0
}

/// Rule 2.3.1, with the template's own tolerations as (key, operator, value, effect).
fn tolerations(spec: &Value) -> Vec<[String; 4]> {
    let own = spec["tolerations"].as_array().into_iter().flatten();
    let field = |t: &Value, name: &str| t[name].as_str().unwrap_or_default().to_owned();
    let mut all: Vec<[String; 4]> = own
        .map(|t| ["key", "operator", "value", "effect"].map(|name| field(t, name)))
        .collect();
    let mut add = |name: &str, effect: &str| {
        let key = format!("node.kubernetes.io/{name}");
        all.push([key, "Exists".into(), String::new(), effect.into()]);
    };
    add("not-ready", "NoExecute");
    add("unreachable", "NoExecute");
    add("disk-pressure", "NoSchedule");
    add("memory-pressure", "NoSchedule");
    add("pid-pressure", "NoSchedule");
    add("unschedulable", "NoSchedule");
    if spec["hostNetwork"] == true {
        add("network-unavailable", "NoSchedule");
    }
    all
}

/// Rule 2.2.6.
fn tolerates([key, operator, value, effect]: &[String; 4], taint: &Taint) -> bool {
    let effect_matches = effect.is_empty() || *effect == taint.effect.as_str();
    let key_matches = key.is_empty() || *key == taint.key;
    let value_matches = match operator.as_str() {
        "Exists" => true,
        "" | "Equal" => *value == taint.value,
        _ => false,
    };
    effect_matches && key_matches && value_matches
}

/// Rule 5.2.1.
pub(super) fn is_updated(pod: &PodView, hash: &str, generation: Option<i64>) -> bool {
    let by_hash = pod
        .labels
        .get(HASH_LABEL)
        .is_some_and(|label| label == hash);
    let by_generation = match (pod.labels.get(GENERATION_LABEL), generation) {
        (Some(label), Some(generation)) => label.parse() == Ok(generation),
        _ => false,
    };
    (by_hash && !hash.is_empty()) || by_generation
}

/// Rule 5.3.1.
pub(super) fn is_available(
    ready_at: Option<Timestamp>,
    min_ready_seconds: i64,
    now: Timestamp,
) -> bool {
    match ready_at {
        None => false,
        Some(_) if min_ready_seconds == 0 => true,
        Some(Timestamp::MAX) => false,
        Some(at) => now.as_millis() - at.as_millis() >= min_ready_seconds * 1000,
    }
}

/// Rules 3.4.2 and 6.1.1: bound pods first, then by age, then by name.
pub(super) fn sort_by_seniority(pods: &mut [&super::Pod]) {
    pods.sort_by(|a, b| a.view.name.cmp(&b.view.name));
    pods.sort_by_key(|pod| pod.view.created);
    pods.sort_by_key(|pod| pod.view.bound_to.is_none());
}

/// Rule 5.1.2: percentages are rounded up.
fn scale(limit: IntOrPercent, nodes: i64) -> i64 {
    match limit {
        IntOrPercent::Int(count) => count,
        IntOrPercent::Percent(percent) => {
            let exact = percent * nodes;
            exact / 100 + i64::from(exact % 100 > 0)
        }
    }
}

/// The S of rule 3.4.
pub(super) fn may_surge(strategy: Strategy) -> bool {
    match strategy {
        Strategy::RollingUpdate {
            max_surge: Some(limit),
            ..
        } => scale(limit, 1) > 0,
        _ => false,
    }
}

/// Rules 5.1.1 to 5.1.3: `maxUnavailable` and `maxSurge` in nodes, if anything is rolled out.
pub(super) fn rollout_limits(strategy: Strategy, desired: i64) -> Option<(i64, i64)> {
    let Strategy::RollingUpdate {
        max_unavailable: Some(unavailable),
        max_surge: Some(surge),
    } = strategy
    else {
        return None;
    };
    match (scale(unavailable, desired), scale(surge, desired)) {
        (0, 0) if desired > 0 => Some((1, 0)),
        limits => Some(limits),
    }
}

/// Rule 5.1.5 leaves the order open; this is the one that the planner documents: a mix of both names' FNV-1a hashes.
pub(super) fn rollout_order(daemon_set: &str, node: &str) -> u64 {
    const MODULUS: u64 = 1 << 32;
    let fnv = |name: &str| {
        let mut hash = 2_166_136_261_u64;
        for byte in name.as_bytes() {
            hash = (hash ^ u64::from(*byte)) * 16_777_619 % MODULUS;
        }
        hash
    };
    let mut mixed = fnv(daemon_set) ^ fnv(node);
    mixed = (mixed ^ (mixed / 65_536)) * 0x7feb_352d % MODULUS;
    mixed = (mixed ^ (mixed / 32_768)) * 0x846c_a68b % MODULUS;
    mixed ^ (mixed / 65_536)
}

#[test]
fn percentages_are_rounded_up() {
    let half = IntOrPercent::Percent(50);
    assert_eq!([0, 1, 2, 3].map(|nodes| scale(half, nodes)), [0, 1, 1, 2]);
}
