//! Explains why a DaemonSet's pod runs on a node, or does not.
//!
//! ```text
//!   Snapshot ─▶ daemonset::survey (the planner's rules) ─▶ per node ─▶ Answer
//!                                                           │
//!     eligibility, remedy (node not eligible) · missing_pod · pod, container, probe (pod not available)
//!     unscheduled · rollout (old or new template) · staged (stages and verdicts of a rollout policy)
//!     node_not_ready · network (nodes without a pod network) · waiting (nodes that wait for required DaemonSets)
//!     typo (labels and taints that no node has) · since (when the trouble began) · log (of a crash)
//! ```
//!
//! The planner and the scheduler make every decision; this module only explains them.

mod answer;
mod container;
mod duration;
mod eligibility;
mod finding;
mod label_index;
mod log;
mod missing_pod;
mod network;
mod node_not_ready;
mod pod;
mod probe;
mod remedy;
mod resemblance;
mod rollout;
mod since;
mod snapshot;
mod staged;
#[cfg(test)]
mod tests;
mod typo;
mod unscheduled;
mod waiting;

pub use answer::{Answer, Cause, Check, NodeAnswer, Note, PodAnswer, Verdict};
pub use container::shown_failure;
pub use duration::human_duration;
pub use log::{LogAnswer, LogError, LogSnapshot, LogSource};
pub use resemblance::closest;
pub use snapshot::{NodeSnapshot, PodSnapshot, RequiredSnapshot, Snapshot};
pub use unscheduled::{NodeOccupancy, OccupyingPod};

use std::sync::Arc;

use crate::daemonset::NodeView;
use crate::daemonset::fit::{Fit, Rules};
use crate::daemonset::required::SOME_REQUIRED;
use crate::daemonset::survey::{Input, Survey, SurveyedNode, SurveyedPod, survey};
use crate::natural;
use crate::rollout::outline::{self, Outline};
use finding::Finding;
use typo::Typos;

/// The input of the answer for one node.
struct Case<'a> {
    snapshot: &'a Snapshot,
    survey: &'a Survey<'a>,
    rules: &'a Rules,
    /// The nodes that use up the rollout budget.
    busy: &'a [&'a str],
    rollout: &'a Outline<'a>,
    turns: &'a staged::Turns,
    typos: &'a Typos,
    name: &'a str,
    place: &'a SurveyedNode<'a>,
}

impl<'a> Case<'a> {
    fn node(&self) -> Option<&'a NodeSnapshot> {
        self.place.node.map(|index| &self.snapshot.nodes[index])
    }

    fn pod(&self, standing: &SurveyedPod<'_>) -> &'a PodSnapshot {
        &self.snapshot.pods[standing.index]
    }

    /// The pod that decides the verdict: an available one, else one that is not being deleted, else a new one,
    /// else the oldest.
    fn decisive(&self) -> Option<&'a SurveyedPod<'a>> {
        let rank = |s: &&SurveyedPod<'_>| (s.terminating(), !s.available, !s.updated);
        self.place.pods.iter().min_by_key(rank)
    }
}

/// Answers for every node, and for every node that a pod names, in the natural order of names.
pub fn explain(snapshot: &Snapshot) -> Answer {
    let views: Vec<NodeView> = snapshot.nodes.iter().map(|n| n.view.clone()).collect();
    let pods: Vec<_> = snapshot.pods.iter().map(|p| p.view.clone()).collect();
    let rollout = Outline::of(&outline::Input {
        daemon_set: &snapshot.daemon_set,
        namespace: &snapshot.namespace,
        nodes: &views.iter().collect::<Vec<_>>(),
        pods: &pods.iter().collect::<Vec<_>>(),
        revisions: &snapshot.revisions,
        now: snapshot.now,
    });
    let mut survey = survey(&Input {
        daemon_set: &snapshot.daemon_set,
        nodes: &views,
        pods: &pods,
        revisions: &snapshot.revisions,
        now: snapshot.now,
    });
    if !snapshot.nodes_known {
        assume_nodes(&mut survey);
    }
    staged::judge_by_stable(&mut survey, &rollout);
    let rules = Rules::of_template(&snapshot.daemon_set.template, SOME_REQUIRED);
    let asked = |name: &&Arc<str>| snapshot.only.as_deref().is_none_or(|only| only == &***name);
    let busy = rollout::busy(snapshot, &survey, &rollout);
    let turns = staged::Turns::of(&rollout);
    let typos = Typos::of(&snapshot.daemon_set.template, &rules, &snapshot.nodes);
    let nodes = survey.nodes.keys().filter(asked).map(|name| {
        let case = Case {
            snapshot,
            survey: &survey,
            rules: staged::rules(&rollout, name).unwrap_or(&rules),
            busy: &busy,
            rollout: &rollout,
            turns: &turns,
            typos: &typos,
            name,
            place: &survey.nodes[name],
        };
        node_answer(&case)
    });
    let mut nodes: Vec<NodeAnswer> = nodes.collect();
    nodes.sort_by(|a, b| natural::compare(&a.node, &b.node));
    let mut notes = notes(snapshot, &survey, &rollout);
    notes.splice(0..0, typos.notes(survey.counters.desired == 0));
    let mut answer = Answer::new(snapshot, &survey, nodes, notes);
    answer.ok &= !typos.exclude_all(&rules, &snapshot.nodes);
    answer
}

/// Without permission to list nodes, every node that a pod names is assumed to exist and to be eligible.
fn assume_nodes(survey: &mut Survey<'_>) {
    for place in survey.nodes.values_mut() {
        place.fit = Some(Fit {
            run: true,
            keep: true,
        });
    }
}

fn node_answer(case: &Case<'_>) -> NodeAnswer {
    let finding = find(case);
    let node = case.node();
    let checks = node.map(|node| eligibility::checks(case.rules, &node.view));
    let pods = case.place.pods.iter().map(|s| pod::describe(case, s));
    let mut answer = NodeAnswer::new(case.name, finding, case.snapshot);
    answer.checks = checks.unwrap_or_default();
    answer.pods = pods.collect();
    answer.remarks = remarks(case);
    answer.place = staged::place(case);
    answer
}

fn find(case: &Case<'_>) -> Finding {
    let Some(fit) = case.place.fit else {
        return missing_pod::node_gone(case);
    };
    if case.snapshot.daemon_set.terminating && !case.place.pods.is_empty() {
        return Finding::new(
            Verdict::Lingers,
            Cause::DaemonSetDeleted,
            "the DaemonSet is being deleted, and this pod with it",
        );
    }
    if !fit.run {
        return eligibility::find(case, fit);
    }
    let Some(standing) = case.decisive() else {
        return missing_pod::find(case);
    };
    if standing.available && !standing.terminating() {
        return rollout::find(case, standing);
    }
    pod::find(case, standing)
}

/// Further observations about a node.
fn remarks(case: &Case<'_>) -> Vec<String> {
    let mut remarks = Vec::new();
    let staying = case.place.pods.iter().filter(|s| !s.terminating()).count();
    let doomed = case.place.pods.iter().filter(|s| s.to_delete).count();
    if staying > 1 && doomed > 0 {
        remarks.push(format!(
            "{staying} of its pods are here; the controller deletes {doomed} of them"
        ));
    }
    for orphan in &case.place.orphans {
        let name = &case.snapshot.pods[*orphan].view.name;
        remarks.push(format!(
            "pod {name} has no owner and matches the selector: the controller adopts it"
        ));
    }
    let available = case.decisive().filter(|standing| standing.available);
    remarks.extend(available.and_then(|standing| pod::restarts(case, standing)));
    if case.node().is_some_and(|node| node.view.unschedulable) {
        remarks.push("the node is cordoned, which daemon pods tolerate".to_owned());
    }
    let known = case.place.fit.is_none_or(|fit| fit.run);
    remarks.extend(case.node().filter(|_| known).and_then(network::remark));
    remarks.extend(
        case.node()
            .and_then(|node| waiting::remark(case.snapshot, &node.view)),
    );
    remarks
}

/// Notes about the DaemonSet as a whole.
fn notes(snapshot: &Snapshot, survey: &Survey<'_>, rollout: &Outline<'_>) -> Vec<Note> {
    let mut notes = missing_pod::notes(snapshot);
    let staged = staged::notes(rollout);
    if staged.is_empty() {
        notes.extend(rollout::notes(snapshot, survey));
    }
    notes.extend(staged);
    let unreadable = snapshot.unreadable.iter();
    notes.extend(unreadable.map(|what| Note::new("not-readable", what.clone())));
    notes
}
