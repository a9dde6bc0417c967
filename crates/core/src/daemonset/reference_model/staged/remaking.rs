//! Revisions of a rollout that were deleted by hand (R8.3): stable is made again from memory.

use super::super::super::event::{Answer, Outcome, Ticket};
use super::super::super::history::Revision;
use super::super::pacing::Requested;
use super::super::{Pending, ReferencePlanner, Uid};

impl ReferencePlanner {
    /// The revisions, with stable's as it is remembered if that is gone. It is made again then.
    pub(in super::super) fn with_kept_stable(
        &mut self,
        uid: &Uid,
        mut claimed: Vec<Revision>,
    ) -> Vec<Revision> {
        let set = &self.sets[uid];
        let Some(stable) = set.rollout.as_ref().and_then(|rollout| rollout.stable()) else {
            return claimed;
        };
        if claimed.iter().any(|revision| revision.hash() == stable) {
            return claimed;
        }
        let mut kept = set.history.kept.iter();
        let Some(kept) = kept.find(|kept| kept.hash() == stable).cloned() else {
            return claimed;
        };
        self.remake(uid, &kept);
        claimed.push(kept);
        claimed
    }

    fn remake(&mut self, uid: &Uid, kept: &Revision) {
        let earlier = self.sets[uid].history.remaking;
        if earlier.is_some_and(|earlier| earlier.blocks(self.now)) {
            return;
        }
        let text = format!("create revision {} {}", kept.name, kept.revision);
        let ticket = self.request(uid, &text, "".into(), Pending::Remade(uid.clone()));
        let write = Requested::new(self.now, ticket, earlier);
        self.timers.insert((write.until, uid.clone()));
        self.set_mut(uid).history.remaking = Some(write);
    }

    /// The target and stable are remembered as long as there is a rollout.
    pub(in super::super) fn keep_revisions(
        &mut self,
        uid: &Uid,
        target: &Revision,
        claimed: &[Revision],
    ) {
        let set = self.set_mut(uid);
        let Some(rollout) = &set.rollout else {
            (set.history.kept, set.history.remaking) = (Vec::new(), None);
            return;
        };
        let stable = rollout.stable();
        let stable = claimed.iter().find(|r| Some(r.hash()) == stable);
        set.history.kept = stable.into_iter().chain([target]).cloned().collect();
    }

    pub(in super::super) fn remade_finished(
        &mut self,
        ticket: Ticket,
        uid: &Uid,
        outcome: &Outcome,
    ) {
        if let Ok(Answer::Revision(revision)) = outcome {
            self.on_revision(revision);
        }
        let now = self.now;
        let Some(set) = self.sets.get_mut(uid) else {
            return;
        };
        set.history.triggered = true;
        let Some(mut write) = set.history.remaking.filter(|write| write.ticket == ticket) else {
            return;
        };
        set.history.remaking = None;
        if let Err(failure) = outcome {
            write.fail(now, failure);
            write.expect_nothing();
            set.history.remaking = Some(write);
            self.timers.insert((write.until, uid.clone()));
        }
    }
}
