//! Updates one slot: decides it again and enters the result into its DaemonSet's totals and queues.
//!
//! [`dispatch`](super::dispatch) then requests what the queues hold.

use kennel_types::Timestamp;

use super::super::decision::{Decision, Member, NodeState, RolloutCounts, RolloutRole, decide};
use super::super::rollout::order;
use super::super::status::StatusCounts;
use super::super::view::Phase;
use super::nodes::Nodes;
use super::pods::{Claim, Hot, PodWrite, Pods};
use super::sets::{ActiveRevision, Queue, Queues, RolloutTotals, Set};
use super::slot::{Queued, Slot};
use super::staged::{Context, StagedSlot, Tick};
use super::symbols::{self, Symbol};
use super::timers::Recheck;
use super::{Counters, Planner};
use crate::ids::{NodeId, PodId, SetId};

impl Planner {
    pub(super) fn update_slot(&mut self, set: SetId, node: NodeId) {
        self.mark_for_sync(set);
        self.waiting.slot_changed(set, node);
        if self.sets[set].staged.is_some() {
            self.update_staged_slot(set, node);
            return;
        }
        let Some(decision) = self.decide_slot(set, node) else {
            return;
        };
        if let Some(at) = apply(&mut self.sets[set], node, &self.nodes, &decision) {
            self.timers.at(at, Recheck::Slot(set, node));
        }
    }

    fn update_staged_slot(&mut self, set: SetId, node: NodeId) {
        let Some((decision, mut new)) = self.decide_staged_slot(set, node) else {
            return;
        };
        let known = &mut self.sets[set];
        let used_budget = known.slot(node).rollout.unavailable;
        if let Some(at) = apply(known, node, &self.nodes, &decision) {
            self.timers.at(at, Recheck::Slot(set, node));
        }
        let staged = known.staged.as_mut();
        let staged = staged.expect("only DaemonSets with a policy come here");
        let held = used_budget && !staged.slot(node).counts.pending;
        let holds = decision.rollout.unavailable && !new.counts.pending;
        if held != holds {
            let key = (order(known.seed, self.nodes.seed(node)), node);
            update_queue(&mut staged.budget_holders, key, held, holds);
            staged.budget_holders_changed = true;
        }
        let failure = new.untold_failure();
        staged.note_health(&mut new, self.steady);
        if let Some(at) = staged.enter(node, new) {
            self.steady_timers.at(at, Recheck::Slot(set, node));
        }
        if let Some(cause) = failure {
            let reference = known.reference.clone();
            let text = format!("{}: {cause}", self.nodes.name(node));
            self.emit(&reference, true, "NodeFailed", text);
        }
    }

    fn decide_staged_slot(&mut self, set: SetId, node: NodeId) -> Option<(Decision, StagedSlot)> {
        let context = Context {
            nodes: &self.nodes,
            pods: &self.pods,
            now: self.now,
            tick: Tick::of(self.steady),
        };
        let set = &self.sets[set];
        let staged = set.staged.as_ref()?;
        staged.decide_slot(set, node, &mut self.scratch, context)
    }

    /// `None` while the planner must not act for the DaemonSet.
    pub(super) fn decide_slot(&mut self, set: SetId, node: NodeId) -> Option<Decision> {
        if self.sets[set].staged.is_some() {
            return self
                .decide_staged_slot(set, node)
                .map(|(decision, _)| decision);
        }
        let set = &self.sets[set];
        decide_slot(set, node, &self.pods, &mut self.scratch, self.now)
    }

    /// Evaluates every node and updates every slot of a DaemonSet.
    pub(super) fn update_all_slots(&mut self, set: SetId) {
        self.mark_for_sync(set);
        self.waiting.set_changed(set);
        self.sets[set].slots_due = false;
        if self.sets[set].staged.is_some() {
            self.update_all_staged_slots(set);
            return;
        }
        let known = &mut self.sets[set];
        known.slots.grow_to(self.nodes.len());
        known.counters = Counters::default();
        known.rollout = RolloutTotals::default();
        known.queues = Queues::default();
        for node in self.nodes.ids() {
            let fit = self.nodes.fit(node, &known.rules);
            let slot = known.slot(node);
            let (head, recheck_at) = (slot.head, slot.recheck_at);
            *slot = Slot {
                recheck_at,
                head,
                fit,
                ..Slot::default()
            };
            if fit.is_none() && head.is_none() {
                continue;
            }
            let decision = decide_slot(known, node, &self.pods, &mut self.scratch, self.now);
            let recheck = decision.and_then(|decision| apply(known, node, &self.nodes, &decision));
            if let Some(at) = recheck {
                self.timers.at(at, Recheck::Slot(set, node));
            }
        }
    }
}

impl Planner {
    /// Decides every slot of a DaemonSet again, where neither templates nor the order of nodes have changed.
    pub(super) fn decide_all_slots(&mut self, set: SetId) {
        self.mark_for_sync(set);
        for node in self.nodes.ids() {
            let slot = self.sets[set].slot(node);
            if slot.fit.is_some() || slot.head.is_some() {
                self.update_slot(set, node);
            }
        }
    }

    /// As [`update_all_slots`](Self::update_all_slots), with a rollout policy.
    fn update_all_staged_slots(&mut self, set: SetId) {
        let known = &mut self.sets[set];
        known.slots.grow_to(self.nodes.len());
        known.counters = Counters::default();
        known.rollout = RolloutTotals::default();
        known.queues = Queues::default();
        let mut staged = known.staged.take().expect("the caller has checked it");
        staged.reset();
        for node in self.nodes.ids() {
            let fit = self.nodes.fit(node, &known.rules);
            let slot = known.slot(node);
            *slot = Slot {
                recheck_at: slot.recheck_at,
                head: slot.head,
                fit,
                ..Slot::default()
            };
            staged.place_node(known, node, &self.nodes);
        }
        staged.load_cut(known.seed);
        known.staged = Some(staged);
        for node in self.nodes.ids() {
            let slot = self.sets[set].slot(node);
            if slot.fit.is_some() || slot.head.is_some() {
                self.update_staged_slot(set, node);
            }
        }
    }
}

fn decide_slot(
    set: &Set,
    node: NodeId,
    pods: &Pods,
    group: &mut Vec<Member>,
    now: Timestamp,
) -> Option<Decision> {
    let active = set.active.as_ref()?;
    let slot = set.slots.get(node.index()).copied().unwrap_or_default();
    if set.creates.is_empty() && is_steady(&slot, active, pods) {
        return Some(steady_decision(active));
    }
    let adopting = collect_members(group, &slot, active, pods, now);
    let create = set.creates.get(&node);
    let observed = set.reported.observed_generation;
    let backoff = set.backoffs.get(&node);
    Some(decide(&NodeState {
        mode: active.mode,
        fit: slot.fit,
        group,
        creating: create.is_some_and(|create| create.is_outstanding(now)),
        create_blocked_until: create.map_or(Timestamp::MIN, |create| create.until),
        adopting,
        backoff_until: backoff.map_or(Timestamp::MIN, |b| b.until(observed)),
        now,
    }))
}

/// The fast path of a pass over all nodes: the slot has one pod, which is updated and available, and no outstanding
/// write, so that [`steady_decision`] holds.
fn is_steady(slot: &Slot, active: &ActiveRevision, pods: &Pods) -> bool {
    let Some(head) = slot.head else {
        return false;
    };
    if !active.min_ready.is_zero() || !slot.fit.is_some_and(|fit| fit.run) {
        return false;
    }
    let hot = pods.hot(head);
    hot.next.is_none()
        && hot.hash == active.hash
        && hot.claim == Claim::Member
        && hot.phase == Phase::Active
        && hot.ready
        && !hot.terminating
        && !hot.has_expectation
}

/// What [`decide`] returns for a slot that [`is_steady`].
fn steady_decision(active: &ActiveRevision) -> Decision {
    Decision {
        status: StatusCounts {
            desired: true,
            current: true,
            misscheduled: false,
            ready: true,
            updated: true,
            available: true,
        },
        rollout: RolloutCounts {
            available: active.mode.rolls && active.mode.surges,
            ..RolloutCounts::default()
        },
        recheck_at: Timestamp::MAX,
        ..Decision::default()
    }
}

/// Collects the members of a slot, the most senior first. True if an orphan is about to be adopted.
pub(super) fn collect_members(
    group: &mut Vec<Member>,
    slot: &Slot,
    active: &ActiveRevision,
    pods: &Pods,
    now: Timestamp,
) -> bool {
    group.clear();
    let mut adopting = false;
    let mut next = slot.head;
    while let Some(pod) = next {
        let hot = pods.hot(pod);
        let ended = hot.phase != Phase::Active;
        if hot.claim == Claim::Orphan {
            adopting = true;
        } else if !(ended && hot.terminating) {
            group.push(member(pod, hot, active, pods, now));
        }
        next = hot.next;
    }
    if group.len() > 1 {
        // Rules 3.4.2 and 6.1.1.
        let seniority = |pod: &Member| (!pod.bound, pods.hot(pod.id).created);
        let name = |pod: &Member| &pods.view(pod.id).name;
        group.sort_by(|a, b| {
            let order = seniority(a).cmp(&seniority(b));
            order.then_with(|| name(a).cmp(name(b)))
        });
    }
    adopting
}

fn member(id: PodId, hot: &Hot, active: &ActiveRevision, pods: &Pods, now: Timestamp) -> Member {
    let deletion = match pods.expectation(id) {
        Some((PodWrite::Delete, deletion)) => Some(deletion),
        _ => None,
    };
    let same = |label: Symbol, current| label == current && current != symbols::NONE;
    let current_hash = same(hot.hash, active.hash);
    Member {
        id,
        bound: hot.bound,
        terminating: hot.terminating,
        phase: hot.phase,
        current_hash,
        updated: current_hash || same(hot.generation, active.generation),
        ready: hot.ready,
        available_at: if active.min_ready.is_zero() {
            Timestamp::MIN
        } else {
            hot.ready_at + active.min_ready
        },
        deleting: deletion.is_some_and(|deletion| deletion.is_outstanding(now)),
        delete_blocked_until: deletion.map_or(Timestamp::MIN, |deletion| deletion.until),
    }
}

/// Enters a decision into a DaemonSet's totals and queues. Returns when to check the slot again, unless an earlier timer
/// is set.
fn apply(set: &mut Set, node: NodeId, nodes: &Nodes, decision: &Decision) -> Option<Timestamp> {
    let slot = set.slot(node);
    let before = *slot;
    let queued = Queued {
        create: decision.create,
        delete: !decision.deletes.is_empty(),
        candidate: matches!(decision.role, RolloutRole::Candidate(_) | RolloutRole::Gain),
        awaiting_availability: matches!(decision.role, RolloutRole::AwaitsAvailability(_)),
    };
    slot.status = decision.status;
    slot.rollout = decision.rollout;
    slot.queued = queued;
    let recheck = decision.recheck_at < slot.recheck_at;
    if recheck {
        slot.recheck_at = decision.recheck_at;
    }
    if before.status != decision.status {
        set.counters.replace(before.status, decision.status);
    }
    if before.rollout != decision.rollout {
        set.rollout.replace(before.rollout, decision.rollout);
    }
    if before.queued != queued {
        let key = (order(set.seed, nodes.seed(node)), node);
        let queues = &mut set.queues;
        let (old, new) = (before.queued, queued);
        update_queue(&mut queues.create, key, old.create, new.create);
        update_queue(&mut queues.delete, key, old.delete, new.delete);
        update_queue(&mut queues.candidates, key, old.candidate, new.candidate);
        update_queue(
            &mut queues.awaiting_availability,
            key,
            old.awaiting_availability,
            new.awaiting_availability,
        );
    }
    recheck.then_some(decision.recheck_at)
}

fn update_queue(queue: &mut Queue, key: (u32, NodeId), was_in: bool, is_in: bool) {
    match (was_in, is_in) {
        (false, true) => drop(queue.insert(key)),
        (true, false) => drop(queue.remove(&key)),
        (true, true) | (false, false) => {}
    }
}
