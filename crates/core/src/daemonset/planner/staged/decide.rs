//! The decision about one node of a DaemonSet with a rollout policy: which revision the node is driven to (R2), and what
//! holds it back.

use std::time::Duration;

use kennel_types::Timestamp;

use super::super::super::decision::{
    Decision, Member, NodeState, RolloutRole, UpdateMode, decide, decide_rollout,
};
use super::super::super::expectation::Expectation;
use super::super::super::fit::Fit;
use super::super::super::status::StatusCounts;
use super::super::super::view::{Before, Phase as PodPhase, Readiness, Waiting};
use super::super::nodes::Nodes;
use super::super::pods::{Claim, Hot, Pods};
use super::super::sets::{ActiveRevision, Set};
use super::super::slot::Slot;
use super::super::slot_update::collect_members;
use super::super::symbols::{self, Symbol};
use super::judge::{BLAME_AFTER, Evidence, judge};
use super::slot::{Problem, StagedCounts, StagedSlot, Stopwatch, Tick};
use super::{Driven, Staged, Standing};
use crate::ids::{NodeId, PodId};
use crate::rollout::order::order;
use crate::rollout::policy::DownNodes;
use crate::rollout::state::Accepted;

/// The tables and the time.
#[derive(Clone, Copy)]
pub(in super::super) struct Context<'a> {
    pub(in super::super) nodes: &'a Nodes,
    pub(in super::super) pods: &'a Pods,
    pub(in super::super) now: Timestamp,
    pub(in super::super) tick: Tick,
}

/// What a pass over a node's pods finds.
#[derive(Clone, Copy, Default)]
struct Found<'a> {
    /// The pod of the target that is not being deleted.
    target: Option<&'a Hot>,
    target_available: bool,
    /// When the oldest such pod was created.
    target_created: Option<Timestamp>,
    /// An available pod of a revision that is neither the target nor stable, and has not failed.
    superseded_available: bool,
    any: bool,
    any_available: bool,
    /// A pod that the API does not show as being deleted.
    remains: bool,
    /// Such a pod of the target.
    target_remains: bool,
}

/// Where a node stands in its rollout.
#[derive(Clone, Copy)]
struct NodeRollout<'a> {
    found: Found<'a>,
    /// The target's pod.
    judged: Option<PodId>,
    readiness: Readiness,
    /// Its Ready is unknown, and it is skipped.
    unreachable: bool,
    admitted: bool,
    driven: Driven,
    /// The node does not change its revision at present.
    holds: bool,
}

/// What a node in between counts for in the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Charge {
    AsDecided,
    /// It is down, failed or excused (R3.4, R4.1).
    Free,
    /// The target has taken it down: it uses budget although its taints keep pods away (R4.2).
    Blamed,
}

impl Staged {
    /// Decides a slot and returns what the planner keeps of it.
    pub(in super::super) fn decide_slot(
        &self,
        set: &Set,
        node: NodeId,
        group: &mut Vec<Member>,
        context: Context<'_>,
    ) -> Option<(Decision, StagedSlot)> {
        let target = set.active.as_ref()?;
        let slot = set.slots.get(node.index()).copied().unwrap_or_default();
        let mut mine = self.slots.get(node.index()).copied().unwrap_or_default();
        let rollout = self.node_rollout(set, node, &slot, &mine, context)?;
        let mut decision = self.decide_node(set, node, &slot, &mine, &rollout, group, context)?;
        let create_failed = set.creates.get(&node).is_some_and(Expectation::has_failed);
        self.observe(&mut mine, &rollout, create_failed, context);
        match self.judge_node(node, &slot, &mut mine, &rollout, context) {
            Charge::AsDecided => {}
            Charge::Free => {
                decision.rollout.unavailable = false;
                decision.rollout.surge = false;
            }
            Charge::Blamed => {
                decision.rollout.unavailable = !target.mode.surges;
                decision.rollout.surge = target.mode.surges;
            }
        }
        if decision.status.desired && rollout.unreachable {
            decision.status = StatusCounts {
                misscheduled: !group.is_empty(),
                ..StatusCounts::default()
            };
        }
        let first = group.first().map(|first| context.pods.hot(first.id));
        decision.status.updated =
            decision.status.desired && first.is_some_and(|first| self.is_of(first, target));
        if self.frozen {
            decision.create = false;
            decision.deletes.clear();
            decision.role = RolloutRole::None;
        }
        Some((decision, mine))
    }

    /// Which revision the node is driven to, and what holds it back.
    fn node_rollout<'a>(
        &self,
        set: &Set,
        node: NodeId,
        slot: &Slot,
        mine: &StagedSlot,
        context: Context<'a>,
    ) -> Option<NodeRollout<'a>> {
        let target = set.active.as_ref()?;
        let readiness = context.nodes.readiness(node);
        let skips = self.policy.down_nodes == DownNodes::Skip;
        let unreachable = skips && readiness == Readiness::Unknown;
        let (found, judged) = self.find_pods(slot, target, context);
        let in_rollout = mine.value.is_some();
        let admitted = in_rollout && self.admits(set, node, mine, found.target_created, context);
        let driven = match self.standing {
            Standing::Direct => Driven::Target,
            _ => self.drive(admitted, found),
        };
        Some(NodeRollout {
            found,
            judged,
            readiness,
            unreachable,
            admitted,
            driven,
            holds: self.holds()
                || unreachable
                || driven == Driven::Nowhere
                || self.awaits_ready(slot, mine, driven, readiness),
        })
    }

    /// The node is down, and its taints keep away the pod that it should get (R4.1): what it has stays until it returns.
    fn awaits_ready(
        &self,
        slot: &Slot,
        mine: &StagedSlot,
        driven: Driven,
        readiness: Readiness,
    ) -> bool {
        let skips = self.policy.down_nodes == DownNodes::Skip;
        if !skips || readiness == Readiness::Ready || self.standing != Standing::Staged {
            return false;
        }
        let (selected, fit) = match driven {
            Driven::Target => (mine.selected.by_target, slot.fit),
            Driven::Stable => (mine.selected.by_stable, mine.stable_fit),
            Driven::Nowhere => return false,
        };
        selected && !fit.is_some_and(|fit| fit.run)
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "one call, and every argument is a fact about the node"
    )]
    fn decide_node(
        &self,
        set: &Set,
        node: NodeId,
        slot: &Slot,
        mine: &StagedSlot,
        rollout: &NodeRollout<'_>,
        group: &mut Vec<Member>,
        context: Context<'_>,
    ) -> Option<Decision> {
        let target = set.active.as_ref()?;
        let stays = rollout.holds && rollout.found.any;
        let fit = fit(slot.fit, mine.stable_fit, rollout.driven, stays);
        let revision = match (rollout.driven, &self.stable) {
            (Driven::Stable, Some(stable)) => &stable.active,
            _ => target,
        };
        let adopting = collect_members(group, slot, revision, context.pods, context.now);
        for member in group.iter_mut() {
            let hot = context.pods.hot(member.id);
            member.updated = rollout.holds || self.is_of(hot, revision);
        }
        let create = set.creates.get(&node);
        let observed = set.reported.observed_generation;
        let backoff = set.backoffs.get(&node);
        let decide = if self.assist { decide_rollout } else { decide };
        let mut decision = decide(&NodeState {
            mode: target.mode,
            fit,
            group,
            creating: create.is_some_and(|create| create.is_outstanding(context.now)),
            create_blocked_until: create.map_or(Timestamp::MIN, |create| create.until),
            adopting,
            backoff_until: backoff.map_or(Timestamp::MIN, |b| b.until(observed)),
            now: context.now,
        });
        decision.driven = rollout.driven;
        let may_change = rollout.admitted && !rollout.holds;
        let turn_of = (slot.fit, mine.stable_fit, target.mode);
        self.turn_in_budget(&mut decision, turn_of, may_change, group, context.now);
        if rollout.unreachable || rollout.driven == Driven::Nowhere {
            decision.create = false;
        }
        if rollout.driven == Driven::Nowhere && group.is_empty() {
            // Without stable it gets nothing before its turn.
            decision.rollout.unavailable = false;
        }
        Some(decision)
    }

    /// Judges the node.
    fn judge_node(
        &self,
        node: NodeId,
        slot: &Slot,
        mine: &mut StagedSlot,
        rollout: &NodeRollout<'_>,
        context: Context<'_>,
    ) -> Charge {
        let NodeRollout {
            found, admitted, ..
        } = *rollout;
        let blamed = self.blames(mine, node, rollout, context);
        let skips = self.policy.down_nodes == DownNodes::Skip;
        let pod = found.target;
        let evidence = Evidence {
            pod_failed: pod.is_some_and(|pod| pod.phase == PodPhase::Failed),
            restarts: pod.map_or(0, |pod| pod.restarts),
            before: pod.map_or(Before::None, |pod| self.before_of(pod, mine, node, context)),
            blamed,
            skipped: skips && rollout.readiness != Readiness::Ready,
        };
        let wanted = mine.selected.by_target;
        // Its taints keep the pod away.
        let kept_away = wanted && !slot.fit.is_some_and(|fit| fit.run);
        let healthy = if wanted {
            found.target_available
        } else {
            !found.remains
        };
        let judgement = judge(mine, &evidence, &self.policy, context.tick);
        let failed = judgement.cause.filter(|_| admitted && !judgement.excused);
        mine.judge_at = if admitted {
            judgement.again_at
        } else {
            Tick::MAX
        };
        let down_since = context.nodes.down_since(node);
        if let Some(since) = down_since.filter(|_| admitted && !blamed) {
            let at = since.after(BLAME_AFTER);
            if at > context.tick {
                mine.judge_at = mine.judge_at.min(at);
            }
        }
        let skipped = evidence.skipped && !blamed;
        mine.counts = StagedCounts {
            admitted,
            healthy: admitted && healthy,
            pending: admitted
                && !healthy
                && !skipped
                && !kept_away
                && failed.is_none()
                && !judgement.excused,
            failed,
            on_target: found.target_remains && !rollout.unreachable,
        };
        if blamed && failed.is_some() && !self.accepts_failures() {
            Charge::Blamed
        } else if skipped || failed.is_some() || (admitted && judgement.excused) {
            Charge::Free
        } else {
            Charge::AsDecided
        }
    }

    /// A person has promoted the rollout in spite of failures.
    fn accepts_failures(&self) -> bool {
        let accepted = self.state().map(|state| state.accepted);
        accepted.is_some_and(|accepted| match accepted {
            Accepted::None => false,
            Accepted::Nodes(count) => count > 0,
            Accepted::All => true,
        })
    }

    /// Whether a node has a daemon of another revision that is not available.
    pub(super) fn fails_before(
        &self,
        slot: &Slot,
        target: &ActiveRevision,
        context: Context<'_>,
    ) -> bool {
        let (found, _) = self.find_pods(slot, target, context);
        found.any && !found.any_available && found.target.is_none()
    }

    /// A pass over the pods of a slot. The second part is the target's pod.
    fn find_pods<'a>(
        &self,
        slot: &Slot,
        target: &ActiveRevision,
        context: Context<'a>,
    ) -> (Found<'a>, Option<PodId>) {
        let mut found = Found::default();
        let mut judged = None;
        let mut next = slot.head;
        while let Some(pod) = next {
            let hot = context.pods.hot(pod);
            next = hot.next;
            let leaving = hot.terminating || context.pods.is_being_deleted(pod, context.now);
            let remains = hot.claim == Claim::Member && !hot.terminating;
            found.remains |= remains;
            found.target_remains |= remains && self.is_of(hot, target);
            if hot.claim != Claim::Member || leaving {
                continue;
            }
            let available = is_available(hot, target.min_ready, context.now);
            found.any = true;
            found.any_available |= available;
            if self.is_of(hot, target) {
                found.target = Some(hot);
                found.target_available |= available;
                let oldest = found
                    .target_created
                    .map_or(hot.created, |o| o.min(hot.created));
                found.target_created = Some(oldest);
                judged = Some(pod);
            } else {
                let stable = self.stable.as_ref();
                let is_stable = stable.is_some_and(|stable| self.is_of(hot, &stable.active));
                let failed = self.failed_hashes.contains(&hot.hash);
                found.superseded_available |= available && !is_stable && !failed;
            }
        }
        (found, judged)
    }

    /// Whether a pod is of a revision: by its hash, and by its generation where no revision has that hash (R2.2).
    pub(super) fn is_of(&self, pod: &Hot, revision: &ActiveRevision) -> bool {
        let same = |label: Symbol, of: Symbol| label == of && of != symbols::NONE;
        same(pod.hash, revision.hash)
            || (!self.known_hashes.contains(&pod.hash) && same(pod.generation, revision.generation))
    }

    /// Whether the node's turn has come (R3.1, R3.7).
    fn admits(
        &self,
        set: &Set,
        node: NodeId,
        mine: &StagedSlot,
        target_created: Option<Timestamp>,
        context: Context<'_>,
    ) -> bool {
        match self.standing {
            Standing::Direct => true,
            Standing::Unstarted | Standing::Back => false,
            Standing::Staged => {
                let order = || order(set.seed, context.nodes.seed(node));
                let place = || Self::place(set, node, context.nodes);
                self.cut.admits(mine.value, order, place)
                    || self.is_selected(node, context.nodes)
                    || target_created
                        .is_some_and(|created| self.keeps_target(node, created, context.nodes))
            }
        }
    }

    fn drive(&self, admitted: bool, found: Found<'_>) -> Driven {
        if admitted {
            return Driven::Target;
        }
        let left = found.superseded_available && self.standing != Standing::Back;
        match &self.stable {
            Some(_) if left || self.assist => Driven::Nowhere,
            Some(_) => Driven::Stable,
            None => Driven::Nowhere,
        }
    }

    /// A node that only one of the two templates selects gains or loses its pod within the budget (R2.1).
    fn turn_in_budget(
        &self,
        decision: &mut Decision,
        (target, stable, mode): (Option<Fit>, Option<Fit>, UpdateMode),
        may_change: bool,
        group: &[Member],
        now: Timestamp,
    ) {
        let (Some(target), Some(stable)) = (target, stable) else {
            return;
        };
        let is_theirs = self.assist || self.standing == Standing::Direct;
        if decision.driven != Driven::Target || is_theirs {
            return;
        }
        if target.run && !stable.run && group.is_empty() && decision.create {
            // It lacks nothing before its turn.
            (decision.create, decision.rollout.unavailable) = (false, false);
            if may_change {
                decision.role = RolloutRole::Gain;
            }
        } else if target.run && !stable.run && mode.surges {
            // What it gains is in between until it is available.
            let there = |pod: &Member| pod.available(now) && !pod.is_leaving();
            decision.rollout.surge |= !group.iter().any(there);
        }
        if !target.keep && stable.keep {
            let available = |pod: &&Member| pod.available(now) && !pod.is_leaving();
            if let Some(pod) = group.iter().find(available) {
                decision.deletes.retain(|(id, _)| *id != pod.id);
                if may_change && pod.delete_blocked_until <= now {
                    decision.role = RolloutRole::Candidate(pod.id);
                }
            }
        }
    }

    /// What a node's daemon was before the target's pod. Another controller's pods do not say it (R11), so what was
    /// seen when the old one was deleted counts, or what the state has.
    fn before_of(
        &self,
        pod: &Hot,
        mine: &StagedSlot,
        node: NodeId,
        context: Context<'_>,
    ) -> Before {
        match pod.before {
            Before::None if self.assist => mine
                .before
                .unwrap_or_else(|| self.recorded_before(context.nodes.name(node))),
            before => before,
        }
    }

    /// Notes since when the target's pod is not ready and what ails the node.
    fn observe(
        &self,
        mine: &mut StagedSlot,
        rollout: &NodeRollout<'_>,
        create_failed: bool,
        context: Context<'_>,
    ) {
        let NodeRollout {
            found,
            judged,
            admitted,
            readiness,
            ..
        } = *rollout;
        let tick = context.tick;
        if mine.judged != judged {
            mine.judged = judged;
            // It was created just now, or nobody knows how long it was not ready: the wait starts over (R5.1).
            mine.not_ready = Stopwatch::default();
        }
        if found.target_available {
            mine.not_ready = Stopwatch::default();
        }
        let up = readiness == Readiness::Ready || self.policy.down_nodes == DownNodes::Count;
        let runs = admitted && up && found.target.is_some_and(|pod| !pod.ready);
        mine.not_ready.run(runs, tick);
        let problem = match found.target {
            Some(pod) if pod.waiting != Waiting::No => Problem::Waiting(pod.waiting),
            None if admitted && create_failed => Problem::CannotCreate,
            _ => Problem::None,
        };
        mine.set_problem(problem, tick);
    }

    /// Whether the target has taken its node down (R4.2). That is decided once, when the node has been down for long enough,
    /// and holds while it is down: a node that goes down later neither clears nor convicts it.
    fn blames(
        &self,
        mine: &mut StagedSlot,
        node: NodeId,
        rollout: &NodeRollout<'_>,
        context: Context<'_>,
    ) -> bool {
        if !self.suspects(node, rollout, context) {
            mine.blamed = None;
            return false;
        }
        let since = context.nodes.went_down(node);
        let blamed = mine.blamed;
        let blamed = blamed.unwrap_or_else(|| !self.is_outage(since, context));
        mine.blamed = Some(blamed);
        blamed
    }

    /// Whether a node went down that got the target's pod shortly before, and has been seen down for long enough.
    fn suspects(&self, node: NodeId, rollout: &NodeRollout<'_>, context: Context<'_>) -> bool {
        let is_judged = rollout.admitted && self.standing == Standing::Staged;
        let Some(pod) = rollout.found.target.filter(|_| is_judged) else {
            return false;
        };
        let nodes = context.nodes;
        let Some(since) = nodes.down_since(node) else {
            return false;
        };
        let view = nodes.view(node);
        let cordoned = view.is_none_or(|view| view.unschedulable);
        let age = match nodes.down_before_start(node) {
            // Both times are the API's, in whole seconds: nothing is lost by our own clock.
            Some(at) => u64::try_from(at.millis_since(pod.created))
                .map(Duration::from_millis)
                .ok(),
            None => pod.created_tick.until(nodes.went_down(node)),
        };
        let in_window = age.is_some_and(|age| age <= self.policy.blame_window);
        let long_enough = since.after(BLAME_AFTER) <= context.tick;
        in_window && long_enough && !cordoned && pod.before != Before::Down
    }
}

pub(in super::super) fn is_available(pod: &Hot, min_ready: Duration, now: Timestamp) -> bool {
    pod.ready
        && (min_ready.is_zero()
            || (pod.ready_at != Timestamp::MAX && pod.ready_at + min_ready <= now))
}

/// The eligibility by the template that the node is driven to. Pods that are held stay.
fn fit(target: Option<Fit>, stable: Option<Fit>, driven: Driven, stays: bool) -> Option<Fit> {
    let fit = match driven {
        Driven::Target => target,
        Driven::Stable => stable,
        Driven::Nowhere => target.zip(stable.or(target)).map(|(target, stable)| Fit {
            run: target.run || stable.run,
            keep: true,
        }),
    };
    fit.map(|fit| Fit {
        keep: fit.keep || stays,
        run: fit.run || (stays && target.zip(stable).is_some_and(|(t, s)| t.run || s.run)),
    })
}
