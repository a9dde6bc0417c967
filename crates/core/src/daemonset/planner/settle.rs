//! Bringing one slot up to date: its share of the numbers, and its places in the queues.
//!
//! What is in a queue is asked for elsewhere, when there is room.

use super::super::event::Millis;
use super::super::fit::Fit;
use super::super::member::{Member, Role, Scene, Verdict, judge};
use super::super::rollout::order;
use super::super::view::Phase;
use super::Planner;
use super::nodes::NodeId;
use super::pods::{Claim, Hot, NOBODY, PodWrite, Pods};
use super::sets::{Live, Queue, Set, SetId};
use super::slot::{Queued, Slot};
use super::timers::Look;

impl Planner {
    /// Looks at one slot again.
    pub(super) fn settle(&mut self, set: SetId, node: NodeId) {
        self.touch(set);
        let Some(verdict) = self.verdict(set, node) else {
            return;
        };
        let Some(known) = self.sets.get_mut(set) else {
            return;
        };
        let place = (order(known.seed, self.nodes.seed(node)), node);
        if let Some(at) = apply(known, place, &verdict) {
            self.timers.at(at, Look::Slot(set, node));
        }
    }

    /// What should happen in a slot now; nothing while nothing may be done.
    pub(super) fn verdict(&mut self, set: SetId, node: NodeId) -> Option<Verdict> {
        let known = self.sets.get(set)?;
        let live = known.live.as_ref()?;
        let slot = known.slots.get(node as usize).copied().unwrap_or_default();
        let mut group = std::mem::take(&mut self.scratch);
        let adopting = gather(&mut group, &slot, live, &self.pods, self.now);
        let create = known.creates.get(&node);
        let observed = known.reported.observed_generation;
        let backoff = known.backoffs.get(&node);
        let verdict = judge(&Scene {
            conduct: live.conduct,
            fit: slot.fit,
            group: &group,
            creating: create.is_some_and(|wait| wait.expects(self.now)),
            create_held_until: create.map_or(Millis::MIN, |wait| wait.until),
            adopting,
            backoff_until: backoff.map_or(Millis::MIN, |b| b.until(observed)),
            now: self.now,
        });
        self.scratch = group;
        Some(verdict)
    }

    /// Looks at every slot of a DaemonSet, and judges every node anew.
    pub(super) fn settle_all(&mut self, set: SetId) {
        let limit = self.nodes.limit();
        let Some(known) = self.sets.get_mut(set) else {
            return;
        };
        if known.slots.len() < limit {
            known.slots.resize(limit, Slot::default());
        }
        known.counters = super::Counters::default();
        known.tally = super::sets::Tally::default();
        known.queues = super::sets::Queues::default();
        for id in 0..limit {
            let node = NodeId::try_from(id).expect("numbers fit");
            let fit = self.nodes.view(node).map(|view| known.rules.judge(view));
            let slot = &mut known.slots[id];
            slot.fit = fit;
            slot.share = super::super::status::Share::default();
            slot.burden = super::super::member::Burden::default();
            slot.queued = Queued::default();
        }
        for id in 0..limit {
            let slot = self.sets.get(set).map(|known| known.slots[id]);
            if slot.is_some_and(|slot| slot.fit.is_some() || slot.head != NOBODY) {
                self.settle(set, NodeId::try_from(id).expect("numbers fit"));
            }
        }
    }

    /// The node fits otherwise than before, or not at all any more.
    pub(super) fn refit(&mut self, set: SetId, node: NodeId, fit: Option<Fit>) {
        let Some(known) = self.sets.get_mut(set) else {
            return;
        };
        let slot = known.slot(node);
        if slot.fit != fit {
            slot.fit = fit;
            self.settle(set, node);
        }
    }
}

/// The pods of a slot, the most senior first. True if one is about to be adopted.
fn gather(group: &mut Vec<Member>, slot: &Slot, live: &Live, pods: &Pods, now: Millis) -> bool {
    group.clear();
    let mut adopting = false;
    let mut next = slot.head;
    while next != NOBODY {
        let hot = pods.hot(next);
        let ended = hot.phase != Phase::Active;
        if hot.claim == Claim::Orphan {
            adopting = true;
        } else if !(ended && hot.terminating) {
            group.push(member(next, hot, live, pods, now));
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

fn member(id: u32, hot: &Hot, live: &Live, pods: &Pods, now: Millis) -> Member {
    let deletion = match pods.wait(id) {
        Some((PodWrite::Delete, wait)) => Some(wait),
        _ => None,
    };
    let going = deletion.is_some_and(|wait| wait.expects(now));
    let same = |label, current| label == current && current != super::symbols::NONE;
    let current_hash = same(hot.hash, live.hash);
    Member {
        id,
        bound: hot.bound,
        terminating: hot.terminating,
        phase: hot.phase,
        current_hash,
        updated: current_hash || same(hot.generation, live.generation),
        ready: hot.ready,
        available_at: match live.min_ready {
            0 => Millis::MIN,
            _ => hot.ready_at.saturating_add(live.min_ready),
        },
        going,
        held_until: deletion.map_or(Millis::MIN, |wait| wait.until),
    }
}

/// Enters a verdict into a DaemonSet's numbers and queues. Returns when to look again, unless the
/// timers know already.
fn apply(set: &mut Set, place: (u32, NodeId), verdict: &Verdict) -> Option<Millis> {
    let slot = set.slot(place.1);
    let before = *slot;
    let queued = Queued {
        create: verdict.create,
        delete: !verdict.doomed.is_empty(),
        candidate: matches!(verdict.role, Role::Candidate(_)),
        leaving: matches!(verdict.role, Role::Leaving(_)),
    };
    slot.share = verdict.share;
    slot.burden = verdict.burden;
    slot.queued = queued;
    let look = verdict.wake < slot.look_at;
    if look {
        slot.look_at = verdict.wake;
    }
    if before.share != verdict.share {
        set.counters -= before.share;
        set.counters += verdict.share;
    }
    if before.burden != verdict.burden {
        set.tally.exchange(before.burden, verdict.burden);
    }
    if before.queued != queued {
        let queues = &mut set.queues;
        enter(
            &mut queues.create,
            place,
            before.queued.create,
            queued.create,
        );
        enter(
            &mut queues.delete,
            place,
            before.queued.delete,
            queued.delete,
        );
        let (was, is) = (before.queued.candidate, queued.candidate);
        enter(&mut queues.candidates, place, was, is);
        let (was, is) = (before.queued.leaving, queued.leaving);
        enter(&mut queues.leaving, place, was, is);
    }
    look.then_some(verdict.wake)
}

fn enter(queue: &mut Queue, place: (u32, NodeId), was: bool, is: bool) {
    match (was, is) {
        (false, true) => drop(queue.insert(place)),
        (true, false) => drop(queue.remove(&place)),
        (true, true) | (false, false) => {}
    }
}
