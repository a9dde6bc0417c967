//! The rolling update of one node (rule 5): what the node counts for, and what to do with its old pod.
//!
//! - `unavailable`: delete the old pod, then the manage step creates a new one (`maxSurge` is 0).
//! - `surge`: create the new pod beside the old one, then delete that.
//! - `budget`: how many nodes at once.

mod budget;
mod surge;
mod unavailable;

pub(super) use crate::rollout::order::{order, seed};
pub(super) use budget::Budget;

use kennel_types::Timestamp;

use super::decision::{Decision, Member, NodeState};

/// The old and the new pod of a node. Pods that are being deleted are ignored (rule 5.1.4).
struct Pair<'a> {
    new: Option<&'a Member>,
    old: Option<&'a Member>,
    /// A new pod exists or is being created.
    has_new: bool,
    /// There is more than one new or more than one old pod.
    ambiguous: bool,
}

impl<'a> Pair<'a> {
    fn of(node: &NodeState<'a>) -> Self {
        let mut pair = Self {
            new: None,
            old: None,
            has_new: node.creating,
            ambiguous: false,
        };
        for pod in node.group.iter().filter(|pod| !pod.is_leaving()) {
            let place = if pod.updated {
                pair.has_new = true;
                &mut pair.new
            } else {
                &mut pair.old
            };
            pair.ambiguous |= place.replace(pod).is_some();
        }
        pair
    }

    fn new_is_available(&self, now: Timestamp) -> bool {
        self.new.is_some_and(|pod| pod.available(now))
    }
}

pub(super) fn decide(node: &NodeState, decision: &mut Decision) {
    // The working set (rule 5.1.4).
    let should_run = node.fit.is_some_and(|fit| fit.run);
    let in_working_set = should_run || !node.group.is_empty();
    if node.mode.rolls && in_working_set {
        let pair = Pair::of(node);
        if node.mode.surges {
            surge::decide(node, &pair, decision);
        } else {
            unavailable::decide(node, &pair, decision);
        }
    }
}
