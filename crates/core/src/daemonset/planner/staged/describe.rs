//! What people read about transitions: the reason in the state, and the events.

use std::collections::BTreeMap;

use super::super::super::event::Identity;
use super::super::Planner;
use super::Staged;
use super::record::Note;
use super::slot::Cause;
use crate::ids::{NodeId, SetId};
use crate::rollout::machine::Transition;
use crate::rollout::state::{Accepted, Phase, Reason, State};

/// How many nodes a reason names.
const NAMED: usize = 10;

impl Planner {
    /// The commonest cause of failure, and the nodes.
    pub(super) fn failure(&self, set: SetId) -> Reason {
        let known = &self.sets[set];
        let mut by_cause: BTreeMap<Cause, Vec<NodeId>> = BTreeMap::new();
        if let Some(staged) = known.staged.as_deref() {
            for (_, _, node) in staged.places.iter() {
                let slot = staged.slots.get(node.index());
                if let Some(cause) = slot.and_then(|slot| slot.counts.failed) {
                    by_cause.entry(cause).or_default().push(node);
                }
            }
        }
        let total: usize = by_cause.values().map(Vec::len).sum();
        let most = by_cause.into_iter().max_by_key(|(_, nodes)| nodes.len());
        let Some((cause, nodes)) = most else {
            return Reason {
                code: "Failed".to_owned(),
                message: "nodes have failed".to_owned(),
            };
        };
        Reason {
            code: cause.code().to_owned(),
            message: format!(
                "{total} {} failed, most with {}: {}",
                if total == 1 { "node has" } else { "nodes have" },
                cause.code(),
                self.some_of(set, &nodes, total),
            ),
        }
    }

    /// What holds up a rollout without progress (R5.2): the nodes that are not healthy and the commonest cause that is
    /// known, and those that use up the budget although it is not their turn. Nodes that wait are named last: the others hold
    /// them up. They are not named where nothing but the budget does.
    pub(super) fn laggards(&self, set: SetId) -> String {
        let Some(staged) = self.sets[set].staged.as_deref() else {
            return String::new();
        };
        let budget_wait = self.budget_wait(set);
        let mut by_cause: BTreeMap<Cause, usize> = BTreeMap::new();
        let (mut begun, mut waiting) = (Vec::new(), Vec::new());
        for (_, _, node) in staged.places.iter() {
            let Some(slot) = staged.slots.get(node.index()) else {
                continue;
            };
            let counts = slot.counts;
            let uses_budget = |cause: &Cause| *cause == Cause::NodeDown || !counts.healthy;
            let failed = counts.failed.filter(uses_budget);
            if !counts.pending && failed.is_none() {
                continue;
            }
            let cause = failed.or(slot.problem.cause());
            if let Some(cause) = cause {
                *by_cause.entry(cause).or_default() += 1;
            }
            if cause.is_some() || slot.judged.is_some() {
                begun.push(node);
            } else {
                waiting.push(node);
            }
        }
        let held_up = waiting.len();
        let waits = if held_up == 1 {
            "node waits"
        } else {
            "nodes wait"
        };
        if let Some(wait) = budget_wait.as_ref().filter(|_| begun.is_empty()) {
            return format!("{wait}, so {held_up} {waits}; {}", self.see(set));
        }
        begun.append(&mut waiting);
        let most = by_cause.into_iter().max_by_key(|(_, nodes)| *nodes);
        let most = most.map_or(String::new(), |(cause, _)| {
            format!(" (commonest cause: {})", cause.code())
        });
        let wait = budget_wait.map_or(String::new(), |wait| format!("; {wait}"));
        let total = begun.len();
        format!(
            "{total} {} not yet{most}: {}{wait}; {}",
            if total == 1 { "is" } else { "are" },
            self.names_of(&begun, total),
            self.see(set),
        )
    }

    /// The first of these nodes, how many more there are of all, and the command that shows them.
    fn some_of(&self, set: SetId, nodes: &[NodeId], total: usize) -> String {
        format!("{}; {}", self.names_of(nodes, total), self.see(set))
    }

    fn names_of(&self, nodes: &[NodeId], total: usize) -> String {
        let names: Vec<&str> = nodes
            .iter()
            .take(NAMED)
            .map(|node| &**self.nodes.name(*node))
            .collect();
        let more = match total.saturating_sub(names.len()) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("{}{more}", names.join(", "))
    }

    /// The command that shows more.
    fn see(&self, set: SetId) -> String {
        let Identity {
            namespace, name, ..
        } = &*self.sets[set].reference;
        format!("see kennel rollout status {name} -n {namespace}")
    }

    /// What tells that a stage without a bake is complete: the next transition says only what follows (R9.2).
    pub(super) fn healthy_note(
        &self,
        set: SetId,
        transition: Transition,
        next: &State,
    ) -> Option<Note> {
        let staged = self.sets[set].staged.as_deref()?;
        // Of a promotion in full, a person has accepted what is not healthy.
        let counts = |s: &&State| s.phase == Phase::Updating && s.accepted != Accepted::All;
        let state = staged.state().filter(counts)?;
        let completes = match transition {
            Transition::StageStarted | Transition::RolloutComplete => true,
            // Not that no node was found for the stage (R3.8).
            Transition::AwaitingPromotion => next.reason.is_none(),
            _ => false,
        };
        let stage = staged.stage_text(state.stage);
        let text = format!("{}: {stage} is healthy", staged.target.hash);
        completes.then_some((false, "StageHealthy", text))
    }

    /// The events of a transition.
    pub(super) fn describe(&self, set: SetId, transition: Transition, state: &State) -> Vec<Note> {
        let Some(staged) = self.sets[set].staged.as_deref() else {
            return Vec::new();
        };
        let hash = &staged.target.hash;
        let why = state.reason.as_ref().map_or("", |reason| &reason.message);
        let stable = state.stable.as_deref().unwrap_or("none");
        let stage = staged.stage_text(state.stage);
        let normal = |reason, text: String| vec![(false, reason, text)];
        match transition {
            Transition::StageStarted => normal("StageStarted", format!("{hash}: {stage}")),
            Transition::StageHealthy => normal(
                "StageHealthy",
                format!("{hash}: {stage} is healthy and bakes"),
            ),
            Transition::AwaitingPromotion => {
                let text = format!("{hash}: {stage} waits for a person. {why}");
                normal("AwaitingPromotion", text.trim_end().to_owned())
            }
            Transition::RolloutPaused => {
                let text = format!("{hash}: paused in {stage}: {why}");
                vec![(true, "RolloutPaused", text)]
            }
            Transition::RollingBack => vec![
                (
                    true,
                    "RolloutFailed",
                    format!("{hash} has failed in {stage}: {why}"),
                ),
                (
                    true,
                    "RollingBack",
                    format!("{hash}: every node goes back to {stable}"),
                ),
            ],
            Transition::RolledBack => {
                let text = format!("{hash} is held; no node has it any more, and all get {stable}");
                normal("RolledBack", text)
            }
            Transition::RolloutComplete => {
                normal("RolloutComplete", format!("{hash} is on every node"))
            }
        }
    }
}

impl Staged {
    pub(super) fn stage_text(&self, stage: usize) -> String {
        self.policy.stage_text(stage)
    }
}
