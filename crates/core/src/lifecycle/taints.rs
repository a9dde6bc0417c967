//! The taints that follow from a node's conditions. Taints of other owners are left alone.

use kennel_types::{ConditionStatus, ConditionType};

use crate::lifecycle::NodeFacts;
use crate::lifecycle::conditions::Conditions;
use crate::taint::{Taint, TaintEffect};

/// `Ready` is `False`.
pub const NOT_READY: &str = "node.kubernetes.io/not-ready";
/// `Ready` is `Unknown`.
pub const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
/// Cordoned.
pub const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
/// Set by an administrator when a node is down for good: its pods are deleted without waiting for it.
pub const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// The condition status that causes each taint.
static BY_CONDITION: [(ConditionType, ConditionStatus, &str); 6] = [
    (ConditionType::Ready, ConditionStatus::False, NOT_READY),
    (ConditionType::Ready, ConditionStatus::Unknown, UNREACHABLE),
    (
        ConditionType::MemoryPressure,
        ConditionStatus::True,
        "node.kubernetes.io/memory-pressure",
    ),
    (
        ConditionType::DiskPressure,
        ConditionStatus::True,
        "node.kubernetes.io/disk-pressure",
    ),
    (
        ConditionType::NetworkUnavailable,
        ConditionStatus::True,
        "node.kubernetes.io/network-unavailable",
    ),
    (
        ConditionType::PidPressure,
        ConditionStatus::True,
        "node.kubernetes.io/pid-pressure",
    ),
];

/// Whether pods may be evicted from a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvictionState {
    /// The rate limit of its zone does not allow it yet. An existing `NoExecute` taint stays.
    Waiting,
    Granted,
    /// All zones are down, so the fault is probably ours: `NoExecute` taints are removed.
    Stopped,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaintChange {
    pub keep: Vec<Taint>,
    pub add: Vec<Taint>,
}

/// Whether a node has a `NoExecute` taint of ours.
pub fn is_evicting(facts: &NodeFacts) -> bool {
    let evicts = |taint: &Taint| {
        taint.effect == TaintEffect::NoExecute
            && [NOT_READY, UNREACHABLE].contains(&taint.key.as_str())
    };
    facts.taints.iter().any(evicts)
}

/// The `NoExecute` taint for these conditions.
fn no_execute_taint(conditions: Conditions) -> Option<Taint> {
    match conditions.ready()? {
        ConditionStatus::True => None,
        ConditionStatus::False => Some(Taint::new(NOT_READY, TaintEffect::NoExecute)),
        ConditionStatus::Unknown => Some(Taint::new(UNREACHABLE, TaintEffect::NoExecute)),
    }
}

pub fn should_evict(conditions: Conditions) -> bool {
    no_execute_taint(conditions).is_some()
}

/// The taints of ours that a node should have.
fn desired(facts: &NodeFacts, eviction: EvictionState) -> Vec<Taint> {
    let applies = |(r#type, status, _): &&(ConditionType, ConditionStatus, &str)| {
        facts.conditions.get(r#type) == Some(*status)
    };
    let by_condition = BY_CONDITION.iter().filter(applies);
    let mut desired: Vec<Taint> = by_condition
        .map(|(_, _, key)| Taint::new(key, TaintEffect::NoSchedule))
        .collect();
    if facts.unschedulable {
        desired.push(Taint::new(UNSCHEDULABLE, TaintEffect::NoSchedule));
    }
    let evict = match eviction {
        EvictionState::Waiting => is_evicting(facts),
        EvictionState::Granted => true,
        EvictionState::Stopped => false,
    };
    desired.extend(no_execute_taint(facts.conditions).filter(|_| evict));
    desired
}

/// Whether this controller owns the taint.
fn is_owned(taint: &Taint, facts: &NodeFacts) -> bool {
    let key = taint.key.as_str();
    match taint.effect {
        TaintEffect::NoSchedule => {
            key == UNSCHEDULABLE
                || BY_CONDITION
                    .iter()
                    .any(|(_, _, condition)| *condition == key)
        }
        // A node that never reported may have been given them by another client.
        TaintEffect::NoExecute => {
            [NOT_READY, UNREACHABLE].contains(&key) && facts.conditions.ready().is_some()
        }
        TaintEffect::PreferNoSchedule | TaintEffect::Other(_) => false,
    }
}

fn same(one: &Taint, other: &Taint) -> bool {
    (&one.key, &one.effect) == (&other.key, &other.effect)
}

/// None if the taints are as desired.
pub fn change(facts: &NodeFacts, eviction: EvictionState) -> Option<TaintChange> {
    let desired = desired(facts, eviction);
    let is_kept =
        |found: &&Taint| !is_owned(found, facts) || desired.iter().any(|taint| same(taint, found));
    let keep: Vec<Taint> = facts.taints.iter().filter(is_kept).cloned().collect();
    let present = |taint: &Taint| keep.iter().any(|kept| same(kept, taint));
    let add: Vec<Taint> = desired
        .iter()
        .filter(|taint| !present(taint))
        .cloned()
        .collect();
    let differs = keep.len() < facts.taints.len() || !add.is_empty();
    differs.then_some(TaintChange { keep, add })
}

#[cfg(test)]
mod tests {
    use super::EvictionState::{Granted, Stopped, Waiting};
    use super::*;

    fn facts(
        conditions: &[(ConditionType, ConditionStatus)],
        unschedulable: bool,
        taints: &str,
    ) -> NodeFacts {
        let mut all = Conditions::default();
        for (r#type, status) in conditions {
            all.set(r#type, *status);
        }
        let read = |text: &str| {
            let (key, effect) = text.split_once(':').unwrap();
            let key = key.replace("k/", "node.kubernetes.io/");
            Taint {
                time_added: Some(kennel_types::Timestamp::from_secs(7)),
                ..Taint::new(&key, effect)
            }
        };
        NodeFacts {
            name: "n".into(),
            uid: "u".into(),
            version: "1".into(),
            created: None,
            zone: "".into(),
            excluded: false,
            conditions: all,
            heartbeat: None,
            unschedulable,
            taints: taints.split_whitespace().map(read).collect(),
        }
    }

    fn check(facts: &NodeFacts, eviction: EvictionState, expected: &str) {
        let show = |taint: &Taint| {
            let key = taint.key.replace("node.kubernetes.io/", "k/");
            format!("{key}:{}", taint.effect)
        };
        let found = match change(facts, eviction) {
            None => "unchanged".to_owned(),
            Some(change) => {
                let keep = change.keep.iter().map(show);
                let add = change.add.iter().map(|added| format!("+{}", show(added)));
                keep.chain(add).collect::<Vec<_>>().join(" ")
            }
        };
        assert_eq!(found, expected, "{facts:?}");
    }

    #[test]
    fn s3_12_3_each_condition_has_its_taint() {
        let of = |r#type, status| facts(&[(r#type, status)], false, "");
        let (yes, no) = (ConditionStatus::True, ConditionStatus::False);
        check(&of(ConditionType::Ready, yes), Waiting, "unchanged");
        check(
            &of(ConditionType::Ready, no),
            Waiting,
            "+k/not-ready:NoSchedule",
        );
        let expected = "+k/unreachable:NoSchedule";
        check(
            &of(ConditionType::Ready, ConditionStatus::Unknown),
            Waiting,
            expected,
        );
        for (r#type, key) in [
            (ConditionType::MemoryPressure, "memory-pressure"),
            (ConditionType::DiskPressure, "disk-pressure"),
            (ConditionType::PidPressure, "pid-pressure"),
            (ConditionType::NetworkUnavailable, "network-unavailable"),
        ] {
            check(
                &of(r#type.clone(), yes),
                Waiting,
                &format!("+k/{key}:NoSchedule"),
            );
            check(&of(r#type.clone(), no), Waiting, "unchanged");
            check(
                &of(r#type.clone(), ConditionStatus::Unknown),
                Waiting,
                "unchanged",
            );
            let passed = facts(&[(r#type, no)], false, &format!("k/{key}:NoSchedule"));
            check(&passed, Waiting, "");
        }
        check(
            &facts(&[], true, ""),
            Waiting,
            "+k/unschedulable:NoSchedule",
        );
        check(
            &facts(&[], false, "k/unschedulable:NoSchedule"),
            Waiting,
            "",
        );
        check(&facts(&[], false, ""), Granted, "unchanged");
    }

    #[test]
    fn the_no_execute_taint_waits_for_its_grant() {
        let unreachable = |taints: &str| {
            facts(
                &[(ConditionType::Ready, ConditionStatus::Unknown)],
                false,
                taints,
            )
        };
        let (no_schedule, no_execute) = ("k/unreachable:NoSchedule", "k/unreachable:NoExecute");
        let both = format!("{no_schedule} {no_execute}");
        check(&unreachable(no_schedule), Waiting, "unchanged");
        check(
            &unreachable(no_schedule),
            Granted,
            &format!("{no_schedule} +{no_execute}"),
        );
        check(&unreachable(&both), Waiting, "unchanged");
        check(&unreachable(&both), Stopped, no_schedule);
        let ready = facts(
            &[(ConditionType::Ready, ConditionStatus::True)],
            false,
            &both,
        );
        check(&ready, Granted, "");
    }

    #[test]
    fn unreachable_replaces_not_ready_at_once() {
        let unreachable = facts(
            &[(ConditionType::Ready, ConditionStatus::Unknown)],
            false,
            "k/not-ready:NoSchedule k/not-ready:NoExecute",
        );
        let expected = "+k/unreachable:NoSchedule +k/unreachable:NoExecute";
        check(&unreachable, Waiting, expected);
    }

    #[test]
    fn taints_of_other_owners_stay() {
        let others = "gpu:NoSchedule k/not-ready:PreferNoSchedule k/memory-pressure:NoExecute \
                      node.cloudprovider.kubernetes.io/uninitialized:NoSchedule \
                      k/out-of-service:NoExecute";
        let ready = facts(
            &[(ConditionType::Ready, ConditionStatus::True)],
            false,
            others,
        );
        check(&ready, Waiting, "unchanged");
        let never_reported = facts(&[], false, "k/not-ready:NoExecute");
        check(&never_reported, Waiting, "unchanged");
    }
}
