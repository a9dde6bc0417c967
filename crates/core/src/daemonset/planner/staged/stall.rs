//! When the last node became healthy that was not before (R5.2): progress is not how many are healthy at once, because
//! nodes leave and pods fail while others become healthy.

use std::time::Duration;

use kennel_types::{Monotonic, Timestamp};

use super::super::Planner;
use super::super::pods::Claim;
use super::{PhaseClock, Staged, StagedSlot};
use crate::ids::SetId;

/// What a new controller leaves of the deadline at least: nobody may have been there to update nodes, or to see that a pause
/// was lifted. It is short, so that a controller that is restarted now and then still ends a rollout that is stuck.
const LEFT: Duration = Duration::from_mins(5);

impl Staged {
    /// Notes that a node is healthy.
    pub(in super::super) fn note_health(&mut self, slot: &mut StagedSlot, now: Monotonic) {
        if slot.counts.healthy && !slot.was_healthy {
            slot.was_healthy = true;
            self.progressed = Some(PhaseClock::from_now(now));
        }
    }

    /// Another attempt begins.
    pub(super) fn forget_progress(&mut self) {
        self.progressed = None;
        for index in 0..self.slots.len() {
            self.slots[index].was_healthy = false;
        }
    }
}

impl Planner {
    /// Reads off the target's pods when the last node became healthy, before this process knew of the rollout.
    pub(super) fn find_progress(&mut self, set: SetId) {
        let known = &self.sets[set];
        let (Some(staged), Some(active)) = (known.staged.as_deref(), known.active.as_ref()) else {
            return;
        };
        let mut age = staged.policy.progress_deadline.saturating_sub(LEFT);
        for node in self.nodes.ids() {
            let healthy = staged
                .slots
                .get(node.index())
                .is_some_and(|s| s.counts.healthy);
            let slot = known.slots.get(node.index()).filter(|_| healthy);
            let mut next = slot.and_then(|slot| slot.head);
            while let Some(pod) = next {
                let hot = self.pods.hot(pod);
                next = hot.next;
                let stays = hot.claim == Claim::Member && !hot.terminating;
                if stays && hot.ready && staged.is_of(hot, active) {
                    let since = match hot.ready_at {
                        Timestamp::MAX => hot.created,
                        ready_at => ready_at + active.min_ready,
                    };
                    age = age.min(self.now.saturating_since(since));
                }
            }
        }
        let at = self.steady;
        if let Some(staged) = &mut self.sets[set].staged {
            staged.progressed = Some(PhaseClock { at, age });
        }
    }
}
