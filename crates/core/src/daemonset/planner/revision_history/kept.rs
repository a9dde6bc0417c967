//! Revisions of a rollout that were deleted by hand (R8.3): they are made again from memory, state included. After a
//! restart there is no memory: the rollout pauses, pods stay, and empty nodes wait for a person.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::super::super::event::{Answer, Identity, Outcome, Ticket, Write};
use super::super::super::expectation::Expectation;
use super::super::super::history::Revision;
use super::super::super::history::object::remade;
use super::super::Planner;
use super::super::staged::next_second;
use super::super::symbols::Symbol;
use super::super::write_results::WriteKind;
use crate::ids::SetId;
use crate::rollout::command::Commands;
use crate::rollout::policy::Setting;
use crate::rollout::state::{Accepted, Cut, Phase, Reason, Record, Standing, State, Verdict};
use crate::rollout::{config, stable};

/// The reason of a rollout that waits because a revision was deleted.
pub(in super::super) const REVISION_LOST: &str = "RevisionLost";

/// What the planner remembers of a rollout's revisions.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// The target and stable, by hash.
    revisions: BTreeMap<Arc<str>, Revision>,
    /// Stable's revision that is being made again.
    remaking: Option<Expectation>,
    /// The hash of a stable that is lost, as an event has said.
    told: Option<Arc<str>>,
}

impl Kept {
    /// Its name is taken: it cannot be made again.
    pub(super) fn forget(&mut self, data: &str) {
        self.revisions.retain(|_, kept| &*kept.data != data);
    }

    /// The revision with this data.
    pub(super) fn with_data(&self, data: &str) -> Option<&Revision> {
        self.revisions.values().find(|kept| &*kept.data == data)
    }
}

impl Planner {
    /// The revisions, with stable's as it is remembered if it is gone.
    pub(super) fn with_kept(&mut self, set: SetId, claimed: Vec<Revision>) -> Vec<Revision> {
        let known = &self.sets[set];
        let staged = known.staged.as_deref();
        let stable = staged.and_then(|staged| staged.stable.as_ref());
        let Some(stable) = stable.map(|stable| stable.hash.clone()) else {
            return claimed;
        };
        let gone = claimed.iter().all(|revision| *revision.hash() != *stable);
        let kept = known.history.kept.revisions.get(&stable).cloned();
        let Some(kept) = kept.filter(|_| gone) else {
            return claimed;
        };
        self.remake(set, &kept);
        claimed.into_iter().chain([kept]).collect()
    }

    /// Remembers the target's revision and stable's.
    pub(super) fn keep_revisions(&mut self, set: SetId, target: &Revision, claimed: &[Revision]) {
        let known = &mut self.sets[set];
        let kept = &mut known.history.kept;
        let Some(staged) = known.staged.as_deref() else {
            *kept = Kept::default();
            return;
        };
        let by_state = staged.record.state.as_ref();
        let by_state = by_state.and_then(|state| state.stable.as_deref());
        let rolls = matches!(staged.standing, Standing::Staged | Standing::Back);
        let stable = match &staged.stable {
            Some(stable) => Some(&*stable.hash),
            None => by_state.filter(|_| rolls),
        };
        let found = |hash: &str| claimed.iter().find(|revision| revision.hash() == hash);
        let lost = stable.filter(|hash| found(hash).is_none()).map(Arc::from);
        let needed = [Some(target), stable.and_then(found)].into_iter().flatten();
        kept.revisions = needed
            .map(|revision| (revision.hash().into(), revision.clone()))
            .collect();
        if lost != kept.told {
            kept.told.clone_from(&lost);
            if let Some(hash) = lost {
                let reference = known.reference.clone();
                self.emit(&reference, true, REVISION_LOST, lost_text(&hash));
            }
        }
    }

    fn remake(&mut self, set: SetId, revision: &Revision) {
        let now = self.now;
        let ticket = self.next_ticket();
        let known = &mut self.sets[set];
        let earlier = known.history.kept.remaking;
        if earlier.is_some_and(|earlier| earlier.blocks(now)) {
            return;
        }
        let expectation = Expectation::new(now, ticket, earlier);
        known.history.kept.remaking = Some(expectation);
        let write = Write::CreateRevision {
            name: revision.name.clone(),
            data: revision.data.clone(),
            body: remade(revision, &known.view, revision.revision).into(),
        };
        self.recheck_history(set, expectation.until);
        self.request(ticket, set, write, WriteKind::Remade);
    }

    pub(in super::super) fn remade_finished(
        &mut self,
        ticket: Ticket,
        set: SetId,
        daemon_set: &Arc<Identity>,
        outcome: &Outcome,
    ) {
        if let Ok(Answer::Revision(revision)) = outcome {
            self.on_revision(revision);
        }
        let now = self.now;
        let known = self.sets.get_mut(set);
        // The DaemonSet may be gone by now, and another one may have its id.
        let Some(known) = known.filter(|known| known.reference.uid == daemon_set.uid) else {
            return;
        };
        let remaking = &mut known.history.kept.remaking;
        if remaking.is_some_and(|remaking| remaking.ticket == ticket) {
            let failed = outcome.as_ref().err().zip(*remaking);
            *remaking = failed.map(|(failure, write)| write.failed(now, failure).for_retry());
            if let Some(until) = remaking.map(|remaking| remaking.until) {
                self.recheck_history(set, until);
            }
        }
        self.mark_history(set);
    }

    /// The record for a target whose revision was deleted while no controller ran: the status says that one has seen this
    /// template, but it has no revision.
    pub(super) fn record_of_lost(&mut self, set: SetId, claimed: &[Revision]) -> Option<Record> {
        let symbols = &mut self.symbols;
        let symbols = claimed
            .iter()
            .map(|r| (r.hash(), symbols.intern(Some(r.hash()))));
        let symbols: BTreeMap<&str, Symbol> = symbols.collect();
        let known = &self.sets[set];
        let all: Vec<&Revision> = claimed.iter().collect();
        let seen = known.reported.observed_generation >= known.view.generation
            && config::find(&known.view.template, &all).is_none();
        if !seen
            || known.hash_uses.is_empty()
            || known.history.kept.with_data(known.history.data()).is_some()
        {
            return None;
        }
        let none = BTreeMap::new();
        let defaults = self.namespaces.get(&known.reference.namespace);
        let setting = Setting::parse(&known.view.annotations, defaults.unwrap_or(&none));
        setting.policy()?;
        let pods = |hash: &str| {
            let count = symbols
                .get(hash)
                .and_then(|symbol| known.hash_uses.get(symbol));
            count.map_or(0, |count| *count as usize)
        };
        let commands = Commands::parse(&known.view.annotations).once;
        let stable = stable::hash(&known.reference.uid, None, &all, pods);
        let state = State {
            owner: known.reference.uid.to_string(),
            stable: stable.map(str::to_owned),
            attempt: 1,
            stage: 1,
            cut: Cut::Nothing,
            phase: Phase::Paused,
            since: next_second(self.wall),
            reason: Some(Reason {
                code: REVISION_LOST.to_owned(),
                message:
                    "the revision of the template was deleted, and with it how far its rollout was"
                        .to_owned(),
            }),
            accepted: Accepted::None,
            // They were given before it was lost.
            seen: commands
                .into_iter()
                .map(|(key, value, _)| (key.to_owned(), value))
                .collect(),
            stages: Vec::new(),
            failing: BTreeSet::new(),
        };
        Some(Record {
            verdict: Some(Verdict::Progressing),
            state: Some(state),
        })
    }
}

fn lost_text(hash: &str) -> String {
    format!(
        "Revision {hash}, which nodes would go back to, was deleted: pods stay, and empty nodes wait for a person"
    )
}

/// The state of a rollout whose stable was deleted: it waits for a person, unless one has accepted all that remains.
pub(in super::super) fn paused_for_lost(state: &State) -> Option<State> {
    let hash = state.stable.as_ref()?;
    let moves = matches!(
        state.phase,
        Phase::Updating | Phase::Baking | Phase::AwaitingPromotion
    );
    (moves && state.accepted != Accepted::All).then(|| State {
        phase: Phase::Paused,
        reason: Some(Reason {
            code: REVISION_LOST.to_owned(),
            message: lost_text(hash),
        }),
        ..state.clone()
    })
}
