//! The rollout of one DaemonSet at one moment, from what the API shows: for `kennel rollout` and `kennel why`.
//!
//! The planner keeps the same incrementally, and more: what only a controller that has watched can know, such as since
//! when a container waits, is not here.

use std::collections::BTreeMap;
use std::sync::Arc;

use kennel_types::Timestamp;

use super::budget_wait::BudgetWait;
use super::command::{Command, Commands, Extent};
use super::config;
use super::order::{Place, Places, seed};
use super::policy::{DownNodes, Policy, Setting};
use super::stable;
use super::stage::Size;
use super::state::{Phase, Record, Standing, State};
use crate::daemonset::fit::{Fit, Rules};
use crate::daemonset::history::Revision;
use crate::daemonset::pod::is_updated;
use crate::daemonset::required::SOME_REQUIRED;
use crate::daemonset::survey::max_unavailable;
use crate::daemonset::view::{Before, Phase as PodPhase, Readiness, Waiting};
use crate::daemonset::{DaemonSetView, HASH_LABEL, NodeView, PodView};

/// The snapshot.
#[derive(Clone, Copy, Debug)]
pub struct Input<'s, 'a> {
    pub daemon_set: &'a DaemonSetView,
    /// The annotations of its Namespace (R1.1).
    pub namespace: &'s BTreeMap<String, String>,
    pub nodes: &'s [&'a NodeView],
    /// The pods that it owns or could adopt.
    pub pods: &'s [&'a PodView],
    pub revisions: &'a [Revision],
    pub now: Timestamp,
}

/// See the [module](self).
#[derive(Debug)]
pub struct Outline<'a> {
    pub daemon_set: &'a DaemonSetView,
    pub setting: Setting,
    /// The policy that counts: a held target stays held when its policy's annotations vanish (R1.4).
    pub policy: Option<Policy>,
    pub commands: Commands,
    /// The revision of the template; `None` until a controller has created it.
    pub target: Option<&'a Revision>,
    /// The target's.
    pub record: Record,
    pub standing: Standing,
    /// The revision that nodes that are not admitted are driven to.
    pub stable: Option<&'a Revision>,
    /// The rollout's nodes (R2.1), in the order in which stages take them.
    pub nodes: Vec<RolloutNode<'a>>,
    pub now: Timestamp,
    seed: u32,
    /// The placement rules of the target's template.
    rules: Rules,
    rules_of_stable: Option<Rules>,
    /// All revisions of the DaemonSet.
    claimed: Vec<&'a Revision>,
    /// The indices of the nodes, in the order of names.
    by_name: Vec<usize>,
    /// The value of the `spread` label where there is none; shared, to save memory.
    no_value: Arc<str>,
}

/// One of the rollout's nodes.
#[derive(Clone, Debug)]
pub struct RolloutNode<'a> {
    pub view: &'a NodeView,
    /// Its turn has come (R3.1).
    pub admitted: bool,
    /// It has a pod of the target that is not being deleted.
    pub on_target: bool,
    /// It is as the target's template wants it.
    pub healthy: bool,
    /// Its Ready condition is not True.
    pub down: bool,
    /// It is down and gets no new pod before it returns (R4.1).
    pub awaits_return: bool,
    /// The target's pod shows what becomes a failure if it lasts, or is one (R5.1).
    pub failing: bool,
    /// Its pod was failing before its turn (R5.5).
    pub excused: bool,
    /// It has an available pod, of whichever revision.
    pub available: bool,
    /// It uses up `maxUnavailable` although its turn has not come (R3.3).
    pub uses_budget: bool,
    /// When its oldest pod of the target was created.
    target_created: Option<Timestamp>,
    place: Place,
    /// The value of the `spread` label.
    value: Arc<str>,
}

impl<'a> Outline<'a> {
    pub fn of(input: &Input<'_, 'a>) -> Self {
        let owner = &input.daemon_set.uid;
        let count = |hash: &str| {
            let of = |pod: &&&PodView| pod.labels.get(HASH_LABEL).is_some_and(|h| h == hash);
            let mine = |pod: &&&PodView| pod.controller.as_ref() == Some(owner);
            input.pods.iter().filter(mine).filter(of).count()
        };
        let (set, revisions) = (input.daemon_set, input.revisions);
        let mut outline = Self::without_nodes(set, input.namespace, revisions, &count, input.now);
        outline.enter_nodes(input);
        outline
    }

    /// What is the same for all nodes. `pods` counts the DaemonSet's pods with a hash.
    pub fn without_nodes(
        set: &'a DaemonSetView,
        namespace: &BTreeMap<String, String>,
        revisions: &'a [Revision],
        pods: &dyn Fn(&str) -> usize,
        now: Timestamp,
    ) -> Self {
        let owned = |r: &&Revision| r.controller.as_ref() == Some(&set.uid) && !r.terminating;
        let claimed: Vec<&Revision> = revisions.iter().filter(owned).collect();
        let target = config::find(&set.template, &claimed);
        let record = target.map_or_else(Record::default, |r| r.record.owned_by(&set.uid));
        let standing = record.standing();
        let setting = Setting::parse(&set.annotations, namespace);
        let stable = find_stable(&set.uid, target, &record, &claimed, pods);
        let template = stable.and_then(Revision::template);
        Self {
            daemon_set: set,
            policy: policy(&setting, standing),
            setting,
            commands: Commands::parse(&set.annotations),
            target,
            stable,
            record,
            standing,
            nodes: Vec::new(),
            now,
            seed: seed(&format!("{}/{}", set.namespace, set.name)),
            rules: Rules::of_template(&set.template, SOME_REQUIRED),
            rules_of_stable: template.map(|template| Rules::of_template(&template, SOME_REQUIRED)),
            claimed,
            by_name: Vec::new(),
            no_value: Arc::default(),
        }
    }

    pub fn state(&self) -> Option<&State> {
        self.record.state.as_ref()
    }

    pub fn phase(&self) -> Option<Phase> {
        self.state().map(|state| state.phase)
    }

    /// The node of this name and its place in the order, from 1.
    pub fn node(&self, name: &str) -> Option<(usize, &RolloutNode<'a>)> {
        let by_name = |index: &usize| (*self.nodes[*index].view.name).cmp(name);
        let place = self.by_name.binary_search_by(by_name).ok()?;
        let index = self.by_name[place];
        Some((index + 1, &self.nodes[index]))
    }

    /// The command that the controller is about to carry out: the machine's rules for commands that act.
    pub fn pending_command(&self) -> Option<&'static str> {
        let (target, state) = (self.target?, self.state()?);
        let acts = |command: &Command| match command {
            Command::Promote { hash, extent } => hash == target.hash() && promotes(state, *extent),
            Command::Abort { hash } => hash == target.hash() && can_abort(state.phase),
            Command::Retry { hash, attempt } => {
                let failed = matches!(
                    state.phase,
                    Phase::Held | Phase::RollingBack | Phase::Paused
                );
                hash == target.hash() && *attempt == state.attempt && failed
            }
            Command::Unreadable => false,
        };
        let mut open = self.commands.once.iter();
        let found = open.find(|(key, value, command)| {
            let done = state.seen.get(*key) == Some(value);
            self.policy.is_some() && !done && acts(command)
        });
        found.map(|(key, ..)| *key)
    }

    /// The eligibility of a node that is driven to stable.
    pub fn fit_of_stable(&self, node: &NodeView) -> Option<Fit> {
        self.rules_of_stable.as_ref().map(|rules| rules.judge(node))
    }

    /// The placement rules of the target's template.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    pub fn rules_of_stable(&self) -> Option<&Rules> {
        self.rules_of_stable.as_ref()
    }

    /// `stage 2 of 4 (10% 30m)`.
    pub fn stage_text(&self, policy: &Policy) -> String {
        policy.stage_text(self.state().map_or(0, |state| state.stage))
    }

    /// It keeps little beside the nodes: a reader may do this each second for thousands of them.
    fn enter_nodes(&mut self, input: &Input<'_, 'a>) {
        let owner = Some(&self.daemon_set.uid);
        let counts = |pod: &&&PodView| {
            pod.controller.as_ref() == owner && !pod.terminating && pod.target().is_some()
        };
        let mut pods: Vec<&PodView> = input.pods.iter().filter(counts).copied().collect();
        pods.sort_by(|a, b| a.target().cmp(&b.target()));
        let mut found = Vec::with_capacity(input.nodes.len());
        let mut places = Places::default();
        for view in input.nodes {
            let start = pods.partition_point(|pod| pod.target() < Some(&view.name));
            let rest = &pods[start..];
            let count = rest.partition_point(|pod| pod.target() == Some(&view.name));
            if let Some(node) = self.judge(view, &rest[..count]) {
                places.insert(&node.value, node.place, found.len());
                found.push(Some(node));
            }
        }
        self.nodes.reserve_exact(found.len());
        let ranked = places.ranked().into_iter();
        self.nodes
            .extend(ranked.filter_map(|index| found[index].take()));
        self.by_name = (0..self.nodes.len()).collect();
        let nodes = &self.nodes;
        self.by_name
            .sort_unstable_by(|a, b| nodes[*a].view.name.cmp(&nodes[*b].view.name));
    }

    /// One node, if it is one of the rollout's, from its pods that are not being deleted.
    pub fn judge<'n>(&self, view: &'n NodeView, pods: &[&PodView]) -> Option<RolloutNode<'n>> {
        let wanted = self.rules.selects_ready(view);
        let by_stable = self.rules_of_stable.as_ref();
        let by_stable = by_stable.is_some_and(|rules| rules.selects_ready(view));
        if !wanted && !by_stable {
            return None;
        }
        let mut node = self.rollout_node(view, wanted, pods);
        let kept_away = wanted && !self.rules.judge(view).run;
        node.awaits_return = node.is_skipped(self.policy.as_ref())
            && (view.ready == Readiness::Unknown || kept_away);
        node.admitted = self.admits(&node);
        // What stable does not select lacks nothing.
        let lacks = !pods.is_empty() || self.fit_of_stable(view).is_some_and(|fit| fit.run);
        node.uses_budget =
            lacks && !node.admitted && !node.available && !node.is_skipped(self.policy.as_ref());
        Some(node)
    }

    /// Nodes whose turn it is wait because others use up `maxUnavailable` (R3.3). Only a controller knows of those that the
    /// target has taken down.
    pub fn budget_wait(&self) -> Option<BudgetWait> {
        let updates = self.standing == Standing::Staged && self.phase() == Some(Phase::Updating);
        let Commands { pause, freeze, .. } = &self.commands;
        let halted = pause.is_some() || freeze.is_some();
        if !updates || halted || matches!(self.setting, Setting::Invalid(_)) {
            return None;
        }
        let set = self.daemon_set;
        let limit = max_unavailable(set.strategy, set.status.desired)?;
        let waits = |node: &RolloutNode<'_>| {
            node.admitted && node.available && !node.healthy && !node.on_target
        };
        let holders = self.nodes.iter().filter(|node| node.uses_budget);
        let names: Vec<&str> = holders.map(|node| &*node.view.name).collect();
        let total = names.len();
        let used_up = i64::try_from(total).is_ok_and(|total| total >= limit);
        (used_up && self.nodes.iter().any(waits)).then(|| BudgetWait::new(limit, names, total))
    }

    /// Whether a pod is of the target's revision (R2.2).
    pub fn is_of_target(&self, pod: &PodView) -> bool {
        let hash = pod.labels.get(HASH_LABEL).map(String::as_str);
        let known = self.claimed.iter().any(|r| Some(r.hash()) == hash);
        let generation = self.daemon_set.template_generation.filter(|_| !known);
        is_updated(pod, self.target.map_or("", Revision::hash), generation)
    }

    fn rollout_node<'n>(
        &self,
        view: &'n NodeView,
        wanted: bool,
        pods: &[&PodView],
    ) -> RolloutNode<'n> {
        let (set, policy) = (self.daemon_set, self.policy.as_ref());
        let spread = policy.and_then(|policy| policy.spread.as_ref());
        let value = spread.and_then(|key| view.labels.get(key));
        let available = |pod: &&PodView| {
            let at = pod.available_at(set.min_ready_seconds);
            at.is_some_and(|at| at <= self.now)
        };
        let of_target = |pod: &&&PodView| self.is_of_target(pod);
        let target: Vec<&PodView> = pods.iter().filter(of_target).copied().collect();
        let restarts = policy.map_or(u32::MAX, |policy| policy.max_restarts);
        let deadline = policy.map(|policy| policy.healthy_deadline);
        let late = |pod: &PodView| {
            let age = self.now.saturating_since(pod.created);
            // What a node that is down shows is old (R4.1).
            let skips = policy.is_some_and(|policy| policy.down_nodes == DownNodes::Skip);
            let skipped = skips && view.ready != Readiness::Ready;
            !skipped
                && pod.ready_since.is_none()
                && deadline.is_some_and(|deadline| age >= deadline)
        };
        let failing = |pod: &&PodView| {
            let health = pod.health;
            pod.phase == PodPhase::Failed
                || health.restarts > restarts
                || health.waiting != Waiting::No
                || late(pod)
        };
        RolloutNode {
            view,
            admitted: false,
            on_target: !target.is_empty(),
            healthy: if wanted {
                target.iter().any(available)
            } else {
                pods.is_empty()
            },
            available: pods.iter().any(available),
            uses_budget: false,
            down: view.ready != Readiness::Ready,
            awaits_return: false,
            failing: target.iter().any(failing),
            excused: target
                .iter()
                .any(|pod| pod.health.before == Before::Failing),
            target_created: target.iter().map(|pod| pod.created).min(),
            place: Place::of(self.seed, &view.name),
            value: value.map_or_else(|| self.no_value.clone(), |value| value.as_str().into()),
        }
    }

    /// Whether the node's turn has come (R3.1, R3.7).
    fn admits(&self, node: &RolloutNode<'_>) -> bool {
        let (Some(policy), Some(state)) = (&self.policy, self.state()) else {
            return self.policy.is_none() || self.standing == Standing::Direct;
        };
        match self.standing {
            Standing::Direct => true,
            Standing::Unstarted | Standing::Back => false,
            Standing::Staged => {
                state.cut.admits(self.seed, &node.value, node.place)
                    || is_selected(stage_size(policy, state.stage), node.view)
                    || node.target_created.is_some_and(|created| {
                        let labels = &node.view.labels;
                        let label = |key: &str| labels.get(key).map(String::as_str);
                        policy.keeps_target(state, created, label)
                    })
            }
        }
    }
}

impl RolloutNode<'_> {
    /// It is down and holds nothing up (R4.1).
    pub fn is_skipped(&self, policy: Option<&Policy>) -> bool {
        self.down && policy.is_some_and(|policy| policy.down_nodes == DownNodes::Skip)
    }
}

fn can_abort(phase: Phase) -> bool {
    matches!(
        phase,
        Phase::Updating | Phase::Baking | Phase::AwaitingPromotion | Phase::Paused
    )
}

fn promotes(state: &State, extent: Extent) -> bool {
    match extent {
        Extent::Full => can_abort(state.phase),
        Extent::Stage(stage) => {
            let waits = matches!(
                state.phase,
                Phase::Baking | Phase::AwaitingPromotion | Phase::Paused
            );
            waits && stage == state.stage.max(1)
        }
    }
}

fn policy(setting: &Setting, standing: Standing) -> Option<Policy> {
    match setting {
        Setting::Policy(policy) => Some((**policy).clone()),
        Setting::Invalid(_) => Some(Policy::default()),
        Setting::Absent if standing == Standing::Back => Some(Policy::default()),
        Setting::Absent | Setting::Off => None,
    }
}

fn find_stable<'a>(
    owner: &Arc<str>,
    target: Option<&Revision>,
    record: &Record,
    claimed: &[&'a Revision],
    pods: &dyn Fn(&str) -> usize,
) -> Option<&'a Revision> {
    let by_hash = |hash: &str| claimed.iter().copied().find(|r| r.hash() == hash);
    match (&record.state, record.standing()) {
        (_, Standing::Direct) => None,
        (Some(state), Standing::Staged | Standing::Back) => {
            state.stable.as_deref().and_then(by_hash)
        }
        _ => {
            let found = stable::hash(owner, target, claimed, pods).and_then(by_hash);
            found.filter(|found| target.is_none_or(|target| target.uid != found.uid))
        }
    }
}

fn stage_size(policy: &Policy, stage: usize) -> Option<&Size> {
    policy.stage(stage).map(|stage| &stage.size)
}

/// Whether a stage takes nodes by label, and this is one.
pub(super) fn is_selected(size: Option<&Size>, node: &NodeView) -> bool {
    let Some(Size::Nodes(selector)) = size else {
        return false;
    };
    selector.matches(|key| node.labels.get(key).map(String::as_str))
}
