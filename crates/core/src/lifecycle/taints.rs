//! Which taints a node's conditions ask for. Taints of others are none of our business.

use crate::lifecycle::conditions::{Conditions, Kind, Says};
use crate::lifecycle::{NodeFacts, NodeTaint};
use crate::taint::{NO_EXECUTE, NO_SCHEDULE, Taint};

/// The node says that it cannot run pods.
pub const NOT_READY: &str = "node.kubernetes.io/not-ready";
/// The node says nothing.
pub const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
/// The node is cordoned.
pub const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
/// An administrator says that the node is down for good: its pods need not be waited for.
pub const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// Which condition asks for which taint, and what it must say for that.
const BY_CONDITION: [(Kind, Says, &str); 6] = [
    (Kind::Ready, Says::False, NOT_READY),
    (Kind::Ready, Says::Unknown, UNREACHABLE),
    (
        Kind::MemoryPressure,
        Says::True,
        "node.kubernetes.io/memory-pressure",
    ),
    (
        Kind::DiskPressure,
        Says::True,
        "node.kubernetes.io/disk-pressure",
    ),
    (
        Kind::NetworkUnavailable,
        Says::True,
        "node.kubernetes.io/network-unavailable",
    ),
    (
        Kind::PidPressure,
        Says::True,
        "node.kubernetes.io/pid-pressure",
    ),
];

/// May pods be driven off a node?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eviction {
    /// Not (yet): its zone is disturbed, or others come first. A taint that is there stays.
    NotYet,
    /// Yes.
    Now,
    /// No, and taints that do so go: not the nodes are ill, but what we see of them.
    Stopped,
}

/// How a node's taints should change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// What stays, as it is.
    pub keep: Vec<NodeTaint>,
    /// What comes.
    pub add: Vec<Taint>,
}

fn taint(key: &str, effect: &str) -> Taint {
    Taint {
        key: key.to_owned(),
        value: String::new(),
        effect: effect.to_owned(),
    }
}

/// Does a node have the taint that drives pods off it, under either name?
pub fn is_evicting(facts: &NodeFacts) -> bool {
    let evicts = |taint: &Taint| {
        taint.effect == NO_EXECUTE && [NOT_READY, UNREACHABLE].contains(&taint.key.as_str())
    };
    facts.taints.iter().any(|found| evicts(&found.taint))
}

/// The taint that drives pods off a node in this state.
fn evicting(conditions: Conditions) -> Option<Taint> {
    match conditions.ready()? {
        Says::True => None,
        Says::False => Some(taint(NOT_READY, NO_EXECUTE)),
        Says::Unknown => Some(taint(UNREACHABLE, NO_EXECUTE)),
    }
}

/// Should pods be driven off a node in this state?
pub fn should_evict(conditions: Conditions) -> bool {
    evicting(conditions).is_some()
}

/// The taints of ours that a node should have.
fn wanted(facts: &NodeFacts, eviction: Eviction) -> Vec<Taint> {
    let asked = |(kind, says, _): &&(Kind, Says, &str)| facts.conditions.get(*kind) == Some(*says);
    let by_condition = BY_CONDITION.iter().filter(asked);
    let mut wanted: Vec<Taint> = by_condition
        .map(|(_, _, key)| taint(key, NO_SCHEDULE))
        .collect();
    if facts.unschedulable {
        wanted.push(taint(UNSCHEDULABLE, NO_SCHEDULE));
    }
    let evict = match eviction {
        Eviction::NotYet => is_evicting(facts),
        Eviction::Now => true,
        Eviction::Stopped => false,
    };
    wanted.extend(evicting(facts.conditions).filter(|_| evict));
    wanted
}

/// Is a taint ours to add and remove on this node?
fn is_ours(taint: &Taint, facts: &NodeFacts) -> bool {
    let key = taint.key.as_str();
    match taint.effect.as_str() {
        NO_SCHEDULE => {
            key == UNSCHEDULABLE
                || BY_CONDITION
                    .iter()
                    .any(|(_, _, condition)| *condition == key)
        }
        // Of a node that has never been heard of nobody knows why it has them.
        NO_EXECUTE => [NOT_READY, UNREACHABLE].contains(&key) && facts.conditions.ready().is_some(),
        _ => false,
    }
}

fn same(one: &Taint, other: &Taint) -> bool {
    (&one.key, &one.effect) == (&other.key, &other.effect)
}

/// How a node's taints should change; nothing, if they are as they should be.
pub fn change(facts: &NodeFacts, eviction: Eviction) -> Option<Change> {
    let wanted = wanted(facts, eviction);
    let stays = |found: &&NodeTaint| {
        !is_ours(&found.taint, facts) || wanted.iter().any(|want| same(want, &found.taint))
    };
    let keep: Vec<NodeTaint> = facts.taints.iter().filter(stays).cloned().collect();
    let there = |want: &Taint| keep.iter().any(|kept| same(&kept.taint, want));
    let add: Vec<Taint> = wanted.iter().filter(|want| !there(want)).cloned().collect();
    let differs = keep.len() < facts.taints.len() || !add.is_empty();
    differs.then_some(Change { keep, add })
}

#[cfg(test)]
mod tests {
    use super::Eviction::{NotYet, Now, Stopped};
    use super::*;

    fn facts(conditions: &[(Kind, Says)], unschedulable: bool, taints: &str) -> NodeFacts {
        let mut all = Conditions::default();
        for (kind, says) in conditions {
            all.set(*kind, *says);
        }
        let read = |text: &str| {
            let (key, effect) = text.split_once(':').unwrap();
            let added = Some(7);
            let key = key.replace("k/", "node.kubernetes.io/");
            let taint = taint(&key, effect);
            NodeTaint { taint, added }
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

    fn check(facts: &NodeFacts, eviction: Eviction, expected: &str) {
        let show = |taint: &Taint| {
            let key = taint.key.replace("node.kubernetes.io/", "k/");
            format!("{key}:{}", taint.effect)
        };
        let found = match change(facts, eviction) {
            None => "as it is".to_owned(),
            Some(change) => {
                let keep = change.keep.iter().map(|kept| show(&kept.taint));
                let add = change.add.iter().map(|added| format!("+{}", show(added)));
                keep.chain(add).collect::<Vec<_>>().join(" ")
            }
        };
        assert_eq!(found, expected, "{facts:?}");
    }

    #[test]
    fn s3_12_3_each_condition_has_its_taint() {
        let of = |kind, says| facts(&[(kind, says)], false, "");
        let (ready, yes, no) = (Kind::Ready, Says::True, Says::False);
        check(&of(ready, yes), NotYet, "as it is");
        check(&of(ready, no), NotYet, "+k/not-ready:NoSchedule");
        let unreachable = "+k/unreachable:NoSchedule";
        check(&of(ready, Says::Unknown), NotYet, unreachable);
        for (kind, key) in [
            (Kind::MemoryPressure, "memory-pressure"),
            (Kind::DiskPressure, "disk-pressure"),
            (Kind::PidPressure, "pid-pressure"),
            (Kind::NetworkUnavailable, "network-unavailable"),
        ] {
            check(&of(kind, yes), NotYet, &format!("+k/{key}:NoSchedule"));
            check(&of(kind, no), NotYet, "as it is");
            check(&of(kind, Says::Unknown), NotYet, "as it is");
            let passed = facts(&[(kind, no)], false, &format!("k/{key}:NoSchedule"));
            check(&passed, NotYet, "");
        }
        check(&facts(&[], true, ""), NotYet, "+k/unschedulable:NoSchedule");
        check(&facts(&[], false, "k/unschedulable:NoSchedule"), NotYet, "");
        check(&facts(&[], false, ""), Now, "as it is");
    }

    #[test]
    fn pods_are_driven_off_only_when_it_is_time() {
        let silent = |taints: &str| facts(&[(Kind::Ready, Says::Unknown)], false, taints);
        let (no_schedule, no_execute) = ("k/unreachable:NoSchedule", "k/unreachable:NoExecute");
        let both = format!("{no_schedule} {no_execute}");
        check(&silent(no_schedule), NotYet, "as it is");
        check(
            &silent(no_schedule),
            Now,
            &format!("{no_schedule} +{no_execute}"),
        );
        check(&silent(&both), NotYet, "as it is");
        check(&silent(&both), Stopped, no_schedule);
        let ready = facts(&[(Kind::Ready, Says::True)], false, &both);
        check(&ready, Now, "");
    }

    #[test]
    fn one_taint_takes_the_place_of_the_other_at_once() {
        let silent = facts(
            &[(Kind::Ready, Says::Unknown)],
            false,
            "k/not-ready:NoSchedule k/not-ready:NoExecute",
        );
        let expected = "+k/unreachable:NoSchedule +k/unreachable:NoExecute";
        check(&silent, NotYet, expected);
    }

    #[test]
    fn taints_of_others_stay_as_they_are() {
        let others = "gpu:NoSchedule k/not-ready:PreferNoSchedule k/memory-pressure:NoExecute \
                      node.cloudprovider.kubernetes.io/uninitialized:NoSchedule \
                      k/out-of-service:NoExecute";
        let well = facts(&[(Kind::Ready, Says::True)], false, others);
        check(&well, NotYet, "as it is");
        let never_heard = facts(&[], false, "k/not-ready:NoExecute");
        check(&never_heard, NotYet, "as it is");
    }
}
