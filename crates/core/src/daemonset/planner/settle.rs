//! Bringing one slot up to date: its share of the numbers, and its places in the queues.
//!
//! What is in a queue is asked for elsewhere, when there is room.

use super::super::event::Millis;
use super::super::fit::Fit;
use super::super::member::{Burden, Member, Role, Scene, Verdict, judge};
use super::super::rollout::order;
use super::super::status::Share;
use super::super::view::Phase;
use super::nodes::{NodeId, Nodes};
use super::pods::{Claim, Hot, NOBODY, PodWrite, Pods};
use super::sets::{Live, Queue, Queues, Set, SetId, Tally};
use super::slot::{Queued, Slot};
use super::timers::Look;
use super::{Counters, Planner};

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
        if let Some(at) = apply(known, node, &self.nodes, &verdict) {
            self.timers.at(at, Look::Slot(set, node));
        }
    }

    /// What should happen in a slot now; nothing while nothing may be done.
    pub(super) fn verdict(&mut self, set: SetId, node: NodeId) -> Option<Verdict> {
        let known = self.sets.get(set)?;
        look_at(known, node, &self.pods, &mut self.scratch, self.now)
    }

    /// Looks at every slot of a DaemonSet, and judges every node anew.
    pub(super) fn settle_all(&mut self, set: SetId) {
        self.touch(set);
        let Some(known) = self.sets.get_mut(set) else {
            return;
        };
        known.slots.grow_to(self.nodes.limit());
        known.counters = Counters::default();
        known.tally = Tally::default();
        known.queues = Queues::default();
        for node in self.nodes.all() {
            let fit = self.nodes.judge(node, &known.rules);
            let slot = known.slot(node);
            let (head, look_at_slot) = (slot.head, slot.look_at);
            *slot = Slot {
                head,
                look_at: look_at_slot,
                fit,
                ..Slot::default()
            };
            if fit.is_none() && head == NOBODY {
                continue;
            }
            let verdict = look_at(known, node, &self.pods, &mut self.scratch, self.now);
            let look = verdict.and_then(|verdict| apply(known, node, &self.nodes, &verdict));
            if let Some(at) = look {
                self.timers.at(at, Look::Slot(set, node));
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

fn look_at(
    set: &Set,
    node: NodeId,
    pods: &Pods,
    group: &mut Vec<Member>,
    now: Millis,
) -> Option<Verdict> {
    let live = set.live.as_ref()?;
    let slot = set.slots.get(node as usize).copied().unwrap_or_default();
    if set.creates.is_empty() && all_is_well(&slot, live, pods) {
        return Some(well(live));
    }
    let adopting = gather(group, &slot, live, pods, now);
    let create = set.creates.get(&node);
    let observed = set.reported.observed_generation;
    let backoff = set.backoffs.get(&node);
    Some(judge(&Scene {
        conduct: live.conduct,
        fit: slot.fit,
        group,
        creating: create.is_some_and(|wait| wait.expects(now)),
        create_held_until: create.map_or(Millis::MIN, |wait| wait.until),
        adopting,
        backoff_until: backoff.map_or(Millis::MIN, |b| b.until(observed)),
        now,
    }))
}

/// Is this the usual slot, with one new and available pod and nothing under way? What follows is
/// known then, and a pass over all nodes meets hardly any other.
fn all_is_well(slot: &Slot, live: &Live, pods: &Pods) -> bool {
    if slot.head == NOBODY || live.min_ready != 0 || !slot.fit.is_some_and(|fit| fit.run) {
        return false;
    }
    let hot = pods.hot(slot.head);
    hot.next == NOBODY
        && hot.hash == live.hash
        && hot.claim == Claim::Member
        && hot.phase == Phase::Active
        && hot.ready
        && !hot.terminating
        && !hot.waits
}

/// What [`judge`] says of such a slot.
fn well(live: &Live) -> Verdict {
    Verdict {
        share: Share {
            desired: true,
            current: true,
            misscheduled: false,
            ready: true,
            updated: true,
            available: true,
        },
        burden: Burden {
            available: live.conduct.rolls && live.conduct.surges,
            ..Burden::default()
        },
        wake: Millis::MAX,
        ..Verdict::default()
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
fn apply(set: &mut Set, node: NodeId, nodes: &Nodes, verdict: &Verdict) -> Option<Millis> {
    let slot = set.slot(node);
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
        let place = (order(set.seed, nodes.seed(node)), node);
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
