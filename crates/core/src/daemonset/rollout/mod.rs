//! How a new template reaches a node (rule 5): what the node counts for, and whether its turn comes.
//!
//! ```text
//!   unavailable: delete the old pod, then a new one is made     surge: make the new pod beside the
//!                                                                      old one, then delete that
//!   order: whose turn it is, the same at each start             budget: how many at once
//! ```

mod budget;
mod order;
mod surge;
mod unavailable;

pub(super) use budget::Budget;
pub(super) use order::{order, seed};

use super::event::Millis;
use super::member::{Member, Scene, Verdict};

/// The pods of a node that matter to a rollout: those that are not going away.
struct Pair<'a> {
    new: Option<&'a Member>,
    old: Option<&'a Member>,
    /// A new pod is there or under way.
    has_new: bool,
    /// More than one new, or more than one old.
    ambiguous: bool,
}

impl<'a> Pair<'a> {
    fn of(scene: &Scene<'a>) -> Self {
        let mut pair = Self {
            new: None,
            old: None,
            has_new: scene.creating,
            ambiguous: false,
        };
        for pod in scene.group.iter().filter(|pod| !pod.leaves()) {
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

    fn new_is_available(&self, now: Millis) -> bool {
        self.new.is_some_and(|pod| pod.available(now))
    }
}

pub(super) fn judge(scene: &Scene, verdict: &mut Verdict) {
    // The working set (rule 5.1.4).
    let should_run = scene.fit.is_some_and(|fit| fit.run);
    let concerned = should_run || !scene.group.is_empty();
    if scene.conduct.rolls && concerned {
        let pair = Pair::of(scene);
        if scene.conduct.surges {
            surge::judge(scene, &pair, verdict);
        } else {
            unavailable::judge(scene, &pair, verdict);
        }
    }
}
