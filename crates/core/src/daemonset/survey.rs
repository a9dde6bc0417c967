//! Evaluates a DaemonSet on all nodes from a snapshot, for `kennel why`.
//!
//! The rules are the planner's (`decide`). Unlike there, no write is outstanding, because a snapshot does not show what
//! a controller has requested.

use std::collections::BTreeMap;
use std::sync::Arc;

use kennel_types::Timestamp;

use super::HASH_LABEL;
use super::decision::{Member, NodeState, RolloutCounts, RolloutRole, UpdateMode, decide};
use super::fit::{Fit, Rules};
use super::history::{Revision, data, name};
use super::pod::is_updated;
use super::required::SOME_REQUIRED;
use super::rollout::Budget;
use super::status::{Counters, StatusCounts};
use super::view::{DaemonSetView, NodeView, PodView, Strategy};
use crate::ids::PodId;
use crate::rollout::config;

/// A pod of the DaemonSet on a node.
#[derive(Clone, Copy, Debug)]
pub struct SurveyedPod<'a> {
    /// Its index in [`Input::pods`].
    pub index: usize,
    pub pod: &'a PodView,
    /// It comes from the current template (rule 5.2).
    pub updated: bool,
    /// Rule 5.3.1.
    pub available: bool,
    /// The controller would delete it now.
    pub to_delete: bool,
}

impl SurveyedPod<'_> {
    pub fn terminating(&self) -> bool {
        self.pod.terminating
    }
}

/// A node that exists or that pods name.
#[derive(Clone, Debug, Default)]
pub struct SurveyedNode<'a> {
    /// Its index in [`Input::nodes`], if it exists.
    pub node: Option<usize>,
    pub fit: Option<Fit>,
    /// The DaemonSet's pods, the most senior first.
    pub pods: Vec<SurveyedPod<'a>>,
    /// Pods that will be adopted: indexes in [`Input::pods`].
    pub orphans: Vec<usize>,
    /// The rollout replaces its old pod when the budget allows.
    pub awaits_budget: bool,
    pub rollout: RolloutCounts,
}

/// The evaluation of a DaemonSet on all nodes.
#[derive(Clone, Debug, Default)]
pub struct Survey<'a> {
    /// By node name.
    pub nodes: BTreeMap<Arc<str>, SurveyedNode<'a>>,
    /// The status that it should have.
    pub counters: Counters,
    /// `maxUnavailable` and `maxSurge` in nodes; `None` if nothing is rolled out.
    pub budget: Option<(i64, i64)>,
}

/// The snapshot to evaluate.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    pub daemon_set: &'a DaemonSetView,
    pub nodes: &'a [NodeView],
    /// The pods that it owns or could adopt.
    pub pods: &'a [PodView],
    pub revisions: &'a [Revision],
    pub now: Timestamp,
}

/// Whether a DaemonSet selects a pod (rule 3.2).
pub(crate) fn selects(daemon_set: &DaemonSetView, pod: &PodView) -> bool {
    let label = |key: &str| pod.labels.get(key).map(String::as_str);
    daemon_set.selector.matches(label)
}

/// The hash label of the current template's pods: that of its revision, or the computed one if a pod carries it although
/// the revision is missing. Otherwise only the template's generation tells which pods are updated.
pub(crate) fn current_hash(
    set: &DaemonSetView,
    revisions: &[Revision],
    carried: impl Fn(&str) -> bool,
) -> Option<String> {
    let owned = |r: &&Revision| r.controller.as_ref() == Some(&set.uid) && !r.terminating;
    let claimed: Vec<&Revision> = revisions.iter().filter(owned).collect();
    let current = config::find(&set.template, &claimed).map(|r| r.hash().to_owned());
    current.or_else(|| {
        let computed = name::hash(&data::of_template(&set.template), set.collision_count);
        Some(computed).filter(|computed| carried(computed))
    })
}

/// How many nodes a rollout may leave without an available pod. `None` if that is not what limits it: with `maxSurge`, or
/// where the limits cannot be read.
pub(crate) fn max_unavailable(strategy: Strategy, desired: i64) -> Option<i64> {
    let budget = if strategy.is_on_delete() {
        Budget::assisted(strategy, desired)
    } else {
        Budget::of(strategy, desired)
    };
    let budget = budget.filter(|_| !strategy.surges())?;
    Some(budget.unavailable)
}

/// Evaluates every node that exists or that pods name.
pub fn survey<'a>(input: &Input<'a>) -> Survey<'a> {
    let set = input.daemon_set;
    let rules = Rules::of_template(&set.template, SOME_REQUIRED);
    let mut nodes: BTreeMap<Arc<str>, SurveyedNode<'a>> = BTreeMap::new();
    for (index, node) in input.nodes.iter().enumerate() {
        let surveyed = nodes.entry(node.name.clone()).or_default();
        surveyed.node = Some(index);
        surveyed.fit = Some(rules.judge(node));
    }
    let carries = |pod: &PodView, hash: &str| pod.labels.get(HASH_LABEL).is_some_and(|h| h == hash);
    let hash = current_hash(set, input.revisions, |hash| {
        input.pods.iter().any(|pod| carries(pod, hash))
    });
    for (index, pod) in input.pods.iter().enumerate() {
        let Some(target) = pod.target() else {
            continue;
        };
        if !selects(set, pod) {
            continue;
        }
        match &pod.controller {
            Some(uid) if *uid == set.uid => {
                let node = nodes.entry(target.clone()).or_default();
                node.pods.push(surveyed_pod(input, hash.as_deref(), index));
            }
            // It will be adopted.
            None if !pod.terminating => {
                nodes.entry(target.clone()).or_default().orphans.push(index);
            }
            _ => {}
        }
    }
    let mut counters = Counters::default();
    let budget = |desired| Budget::of(set.strategy, desired).map(|b| (b.unavailable, b.surge));
    let mode = UpdateMode {
        surges: set.strategy.surges(),
        rolls: budget(0).is_some(),
    };
    for node in nodes.values_mut() {
        let counts = decide_node(node, mode, input, hash.as_deref());
        counters.replace(StatusCounts::default(), counts);
    }
    counters.observed_generation = set.generation;
    Survey {
        nodes,
        budget: budget(counters.desired),
        counters,
    }
}

fn surveyed_pod<'a>(input: &Input<'a>, hash: Option<&str>, index: usize) -> SurveyedPod<'a> {
    let (set, pod) = (input.daemon_set, &input.pods[index]);
    let available_at = pod.available_at(set.min_ready_seconds);
    SurveyedPod {
        index,
        pod,
        updated: is_updated(pod, hash.unwrap_or_default(), set.template_generation),
        available: available_at.is_some_and(|at| at <= input.now),
        to_delete: false,
    }
}

/// Decides one node and returns what it adds to the counters.
fn decide_node(
    node: &mut SurveyedNode<'_>,
    mode: UpdateMode,
    input: &Input<'_>,
    hash: Option<&str>,
) -> StatusCounts {
    node.pods
        .sort_by(|a, b| a.pod.seniority().cmp(&b.pod.seniority()));
    let counted = |s: &&SurveyedPod<'_>| !(s.pod.terminal() && s.pod.terminating);
    let member = |pod: &SurveyedPod<'_>| Member {
        id: PodId::from_index(pod.index),
        bound: pod.pod.bound_to.is_some(),
        terminating: pod.pod.terminating,
        phase: pod.pod.phase,
        current_hash: hash.is_some() && pod.pod.labels.get(HASH_LABEL).map(String::as_str) == hash,
        updated: pod.updated,
        ready: pod.pod.ready_since.is_some(),
        available_at: pod
            .pod
            .available_at(input.daemon_set.min_ready_seconds)
            .unwrap_or(Timestamp::MAX),
        deleting: false,
        delete_blocked_until: Timestamp::MIN,
    };
    let group: Vec<Member> = node.pods.iter().filter(counted).map(member).collect();
    let decision = decide(&NodeState {
        mode,
        fit: node.fit,
        group: &group,
        creating: false,
        create_blocked_until: Timestamp::MIN,
        adopting: !node.orphans.is_empty(),
        backoff_until: Timestamp::MIN,
        now: input.now,
    });
    for pod in &mut node.pods {
        let is_this = |(id, _): &(PodId, _)| id.index() == pod.index;
        pod.to_delete = decision.deletes.iter().any(is_this);
    }
    node.awaits_budget = matches!(decision.role, RolloutRole::Candidate(_));
    node.rollout = decision.rollout;
    decision.status
}
