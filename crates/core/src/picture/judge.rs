//! Judges one node by the rules of the planner.

use kennel_types::{Timestamp, Waiting};

use super::cell::{CellState, Exclusion, Reason};
use crate::daemonset::fit::{Rule, Rules};
use crate::daemonset::history::Revision;
use crate::daemonset::pod::is_updated;
use crate::daemonset::survey::current_hash;
use crate::daemonset::view::{Phase as PodPhase, Readiness};
use crate::daemonset::{DaemonSetView, NodeView, PodView};
use crate::rollout::outline::{Outline, RolloutNode};
use crate::rollout::policy::{Policy, Setting};
use crate::rollout::state::{Phase, Standing};

/// What is the same for all nodes.
pub(super) struct Head<'a> {
    set: &'a DaemonSetView,
    pub(super) outline: Outline<'a>,
    /// The hash of the template's pods, where there is no policy.
    hash: Option<String>,
    /// Decides which pods fail; the defaults where there is no policy.
    limits: Policy,
}

/// What a head depends on beside the DaemonSet, its namespace and its revisions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct HeadKey {
    /// The hash of the template's pods.
    pub(super) hash: Option<String>,
    stable: Option<String>,
}

/// The state of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Judgement {
    pub(super) state: CellState,
    pub(super) reason: Reason,
    /// When time alone may change it; `Timestamp::MAX` if never.
    pub(super) recheck_at: Timestamp,
}

/// The pods of a node that are not being deleted.
struct Place<'n> {
    node: &'n NodeView,
    pods: &'n [PodView],
    /// `None` if it is none of the rollout's nodes.
    member: Option<RolloutNode<'n>>,
}

impl<'a> Head<'a> {
    pub(super) fn new(
        set: &'a DaemonSetView,
        outline: Outline<'a>,
        revisions: &[Revision],
        carried: impl Fn(&str) -> bool,
    ) -> Self {
        let limits = outline.policy.clone().unwrap_or_default();
        let hash = match outline.policy {
            Some(_) => None,
            None => current_hash(set, revisions, carried),
        };
        Self {
            set,
            outline,
            hash,
            limits,
        }
    }

    pub(super) fn key(&self) -> HeadKey {
        HeadKey {
            hash: match self.outline.policy {
                Some(_) => self.outline.target.map(|target| target.hash().to_owned()),
                None => self.hash.clone(),
            },
            stable: self.outline.stable.map(|stable| stable.hash().to_owned()),
        }
    }

    /// `pods` are the DaemonSet's on this node, the most senior first.
    pub(super) fn judge(&self, node: &NodeView, pods: &[PodView]) -> Judgement {
        let staying: Vec<&PodView> = pods.iter().filter(|pod| !pod.terminating).collect();
        let place = Place {
            node,
            pods,
            member: self.outline.judge(node, &staying),
        };
        let (state, reason) = self.find(&place);
        Judgement {
            state,
            reason,
            recheck_at: self.recheck_at(&staying),
        }
    }

    fn is_updated(&self, pod: &PodView) -> bool {
        if self.outline.policy.is_some() {
            return self.outline.is_of_target(pod);
        }
        let hash = self.hash.as_deref().unwrap_or_default();
        is_updated(pod, hash, self.set.template_generation)
    }

    fn available(&self, pod: &PodView) -> bool {
        let at = pod.available_at(self.set.min_ready_seconds);
        at.is_some_and(|at| at <= self.outline.now)
    }

    fn recheck_at(&self, staying: &[&PodView]) -> Timestamp {
        let times = staying.iter().map(|pod| {
            let available = pod.available_at(self.set.min_ready_seconds);
            available.unwrap_or_else(|| pod.created + self.limits.healthy_deadline)
        });
        let ahead = times.filter(|at| *at > self.outline.now);
        ahead.min().unwrap_or(Timestamp::MAX)
    }

    fn find(&self, place: &Place<'_>) -> (CellState, Reason) {
        if self.set.terminating {
            let state = match place.pods {
                [] => CellState::NotEligible,
                _ => CellState::Updating,
            };
            return (state, Reason::DaemonSetDeleted);
        }
        let rules = self.rules(place);
        if !rules.judge(place.node).run
            && (place.node.ready == Readiness::Ready || !rules.selects_ready(place.node))
        {
            return (
                CellState::NotEligible,
                Reason::Excluded(exclusion(rules, place.node)),
            );
        }
        match place.node.ready {
            Readiness::NotReady => return (CellState::Down, Reason::NodeNotReady),
            Readiness::Unknown => return (CellState::Down, Reason::NodeUnknown),
            Readiness::Ready => {}
        }
        let of_template = self.find_pod(place, true);
        if self.goes_to_target(place) {
            return match of_template {
                Some(pod) => self.new_pod(place, pod),
                None => self.old_pod(place),
            };
        }
        match of_template {
            // Before the rollout has started, nobody takes a pod of the target away.
            Some(pod) if self.outline.standing == Standing::Unstarted => self.new_pod(place, pod),
            Some(pod) => match self.failure(pod, true) {
                Some(reason) => (CellState::Failed, reason),
                None if self.available(pod) => (CellState::New, Reason::GoesBack),
                None => (CellState::Updating, Reason::GoesBack),
            },
            None => self.old_pod(place),
        }
    }

    /// The placement rules of the revision that the node is driven to.
    fn rules(&self, place: &Place<'_>) -> &Rules {
        let stable = self.outline.rules_of_stable();
        let admitted = place.member.as_ref().is_none_or(|member| member.admitted);
        stable
            .filter(|_| self.outline.policy.is_some() && !admitted)
            .unwrap_or_else(|| self.outline.rules())
    }

    fn goes_to_target(&self, place: &Place<'_>) -> bool {
        self.outline.policy.is_none()
            || place.member.as_ref().is_none_or(|member| member.admitted)
            || (self.outline.standing == Standing::Unstarted && self.outline.stable.is_none())
    }

    /// A pod that stays and is of the template or is not, an available one first.
    fn find_pod<'p>(&self, place: &Place<'p>, updated: bool) -> Option<&'p PodView> {
        let staying = place.pods.iter().filter(|pod| !pod.terminating);
        let staying = staying.filter(|pod| self.is_updated(pod) == updated);
        staying.min_by_key(|pod| !self.available(pod))
    }

    /// A node with a pod of the template.
    fn new_pod(&self, place: &Place<'_>, pod: &PodView) -> (CellState, Reason) {
        let excused = place.member.as_ref().is_some_and(|member| member.excused);
        let judged = self.outline.standing == Standing::Staged && !excused;
        if let Some(reason) = self.failure(pod, judged) {
            return (CellState::Failed, reason);
        }
        if !self.available(pod) {
            return (CellState::Updating, waits(pod));
        }
        let others = place.pods.iter().any(|other| !self.is_updated(other));
        if others {
            return (CellState::Updating, Reason::OldPodStays);
        }
        (CellState::New, Reason::Runs)
    }

    /// A node without a pod of the template.
    fn old_pod(&self, place: &Place<'_>) -> (CellState, Reason) {
        let Some(pod) = self.find_pod(place, false) else {
            if !place.pods.is_empty() {
                return (CellState::Updating, Reason::Stopping);
            }
            let gets_none = !self.goes_to_target(place) && self.outline.stable.is_none();
            return if gets_none {
                (CellState::Waiting, self.before_its_turn())
            } else {
                (CellState::Updating, Reason::NoPod)
            };
        };
        if let Some(reason) = self.failure(pod, false) {
            return (CellState::Failed, reason);
        }
        if !self.available(pod) {
            return (CellState::Updating, waits(pod));
        }
        if !self.goes_to_target(place) && self.outline.standing != Standing::Back {
            return (CellState::Waiting, self.before_its_turn());
        }
        (CellState::Old, self.why_old())
    }

    /// What a node waits for whose turn has not come.
    fn before_its_turn(&self) -> Reason {
        match self.stopped() {
            Some(reason) => reason,
            None if self.outline.standing == Standing::Unstarted => Reason::NotStarted,
            None => Reason::Stage,
        }
    }

    /// What a node with an old pod waits for whose turn has come, or who keeps it.
    fn why_old(&self) -> Reason {
        if self.outline.standing == Standing::Back && self.outline.policy.is_some() {
            return Reason::Held;
        }
        match self.stopped() {
            Some(reason) => reason,
            None if self.set.strategy.is_on_delete() && self.outline.policy.is_none() => {
                Reason::OnDelete
            }
            None => Reason::Budget,
        }
    }

    fn stopped(&self) -> Option<Reason> {
        if self.outline.commands.freeze.is_some() {
            return Some(Reason::Frozen);
        }
        let paused = self.outline.commands.pause.is_some()
            || matches!(self.outline.setting, Setting::Invalid(_))
            || self.outline.phase() == Some(Phase::Paused);
        paused.then_some(Reason::Paused)
    }

    /// What fails a pod, or will if it lasts. One that is available fails a rollout only by its restarts, and only while its
    /// node is judged.
    fn failure(&self, pod: &PodView, judged: bool) -> Option<Reason> {
        if pod.phase == PodPhase::Failed {
            return Some(Reason::PodFailed);
        }
        let available = self.available(pod);
        let restarts = pod.health.restarts;
        if restarts > self.limits.max_restarts && (judged || !available) {
            return Some(Reason::Restarts(restarts));
        }
        if available {
            return None;
        }
        if pod.health.waiting != Waiting::No {
            return Some(Reason::Waiting(pod.health.waiting));
        }
        let age = self.outline.now.saturating_since(pod.created);
        let late = pod.ready_since.is_none() && age >= self.limits.healthy_deadline;
        late.then_some(Reason::Late)
    }
}

/// What a pod waits for that is not available.
fn waits(pod: &PodView) -> Reason {
    match pod.ready_since {
        Some(_) => Reason::MinReadySeconds,
        None => Reason::Starting,
    }
}

/// The first rule that a node does not meet.
fn exclusion(rules: &Rules, node: &NodeView) -> Exclusion {
    let mut broken = rules.checks(node).filter(|(_, holds)| !holds);
    match broken.next().map(|(rule, _)| rule) {
        Some(Rule::Name(_)) => Exclusion::NodeName,
        Some(Rule::Label(..)) => Exclusion::NodeSelector,
        Some(Rule::Affinity(_)) => Exclusion::NodeAffinity,
        Some(Rule::Taint(_)) | None => Exclusion::Taint,
    }
}
