//! Writes that belong to no step of the present rollout: the number of stable's revision, the verdicts of earlier targets,
//! and a held target that is released.

use super::super::super::event::{Object, Write};
use super::super::super::history::Revision;
use super::super::Planner;
use super::next_second;
use crate::ids::SetId;
use crate::rollout::state::{Accepted, Cut, Phase, Record, State, Verdict};

impl Planner {
    /// Makes stable the second-highest revision, which `kubectl rollout undo` takes (R5.8). The target is renumbered above
    /// it like any current revision.
    pub(super) fn renumber_stable(&mut self, set: SetId, target: &Revision, claimed: &[Revision]) {
        let staged = self.sets[set].staged.as_ref();
        let stable = staged.and_then(|staged| staged.stable.as_ref());
        let Some(hash) = stable.map(|stable| stable.hash.clone()) else {
            return;
        };
        let others = claimed.iter().filter(|revision| revision.uid != target.uid);
        let highest = others.map(|revision| revision.revision).max().unwrap_or(0);
        let stable = claimed.iter().find(|revision| *revision.hash() == *hash);
        let Some(stable) = stable.filter(|stable| stable.revision < highest) else {
            return;
        };
        let number = highest.max(target.revision) + 1;
        let object = Object {
            name: stable.name.clone(),
            uid: stable.uid.clone(),
        };
        self.write_revision(set, object, |revision| Write::RenumberRevision {
            revision,
            number,
        });
    }

    /// `policy: none` releases a held target (R5.6), for good: its verdict is forgotten. When a policy returns, what runs then
    /// decides what is stable (R2). The commands that were carried out stay known.
    pub(super) fn release(&mut self, set: SetId, target: &Revision) {
        let owner = self.sets[set].reference.uid.clone();
        let since = next_second(self.wall);
        let state = target.record.state.clone().map(|state| {
            if *state.owner != *owner {
                return state;
            }
            State {
                stable: None,
                stage: 0,
                cut: Cut::default(),
                phase: Phase::Complete,
                since,
                reason: None,
                accepted: Accepted::None,
                ..state
            }
        });
        let version = target.version.clone();
        let verdict = None;
        self.write_revision(set, target.object(), |revision| Write::WriteRecord {
            revision,
            version,
            record: Box::new(Record { verdict, state }),
        });
    }

    /// Ends the rollouts of earlier targets (R5.7).
    pub(super) fn supersede(&mut self, set: SetId, target: &Revision, claimed: &[Revision]) {
        for revision in claimed.iter().filter(|revision| revision.uid != target.uid) {
            if revision.record.verdict != Some(Verdict::Progressing) {
                continue;
            }
            let version = revision.version.clone();
            let text = format!("{} takes the place of {}", target.hash(), revision.hash());
            let notes = vec![(false, "RolloutSuperseded", text)];
            let record = Record {
                verdict: Some(Verdict::Superseded),
                ..revision.record.clone()
            };
            let object = Object {
                name: revision.name.clone(),
                uid: revision.uid.clone(),
            };
            self.write_revision_with(set, object, notes, |revision| Write::WriteRecord {
                revision,
                version,
                record: Box::new(record),
            });
        }
    }
}
