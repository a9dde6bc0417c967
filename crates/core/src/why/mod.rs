//! Why a DaemonSet's pod runs on a node, or does not.
//!
//! ```text
//!   Snapshot ─▶ daemonset::survey (the planner's rules) ─▶ per node ─▶ Answer
//!                                                           │
//!     misplaced, remedy (does not belong) · absent (no pod) · pod, container (a pod that does not work)
//!     unplaced (no room) · turn (old or new)
//! ```
//!
//! Nothing is decided here that the planner or the scheduler decides elsewhere: this room only finds the
//! words. It changes nothing, asks nobody, and reads no clock.

mod absent;
mod answer;
mod container;
mod misplaced;
mod pod;
mod probe;
mod remedy;
mod seen;
mod span;
#[cfg(test)]
mod tests;
mod turn;
mod unplaced;

pub use answer::{Answer, Cause, Check, NodeAnswer, Note, PodAnswer, Time, Verdict};
pub use seen::{Event, Node, Pod, PodFacts, Snapshot};
pub use span::span;
pub use unplaced::{Crowd, Neighbour};

use std::sync::Arc;

use crate::daemonset::NodeView;
use crate::daemonset::fit::{Fit, Rules};
use crate::daemonset::survey::{Ground, Place, Standing, Survey, survey};
use answer::Finding;

/// What one answer is made from.
struct Case<'a> {
    snapshot: &'a Snapshot,
    survey: &'a Survey<'a>,
    rules: &'a Rules,
    /// The nodes that hold the rollout up.
    busy: &'a [&'a str],
    name: &'a str,
    place: &'a Place<'a>,
}

impl<'a> Case<'a> {
    fn node(&self) -> Option<&'a Node> {
        self.place.node.map(|index| &self.snapshot.nodes[index])
    }

    fn pod(&self, standing: &Standing<'_>) -> &'a Pod {
        &self.snapshot.pods[standing.index]
    }

    /// The pod that the node is judged by: one that works, else one that stays, else a new one, else the
    /// most senior.
    fn foremost(&self) -> Option<&'a Standing<'a>> {
        let rank = |s: &&Standing<'_>| (s.leaves(), !s.available, !s.updated);
        self.place.pods.iter().min_by_key(rank)
    }
}

/// Answers for every node, and for every node that pods speak of, in the order of names.
pub fn explain(snapshot: &Snapshot) -> Answer {
    let views: Vec<NodeView> = snapshot.nodes.iter().map(|n| n.view.clone()).collect();
    let pods: Vec<_> = snapshot.pods.iter().map(|p| p.view.clone()).collect();
    let mut survey = survey(&Ground {
        daemon_set: &snapshot.daemon_set,
        nodes: &views,
        pods: &pods,
        revisions: &snapshot.revisions,
        now: snapshot.now,
    });
    if !snapshot.nodes_known {
        assume_nodes(&mut survey);
    }
    if let Some(asked) = &snapshot.only {
        survey.places.entry(asked.as_str().into()).or_default();
    }
    let rules = Rules::of_template(&snapshot.daemon_set.template);
    let asked = |name: &&Arc<str>| snapshot.only.as_deref().is_none_or(|only| only == &***name);
    let busy = turn::busy(snapshot, &survey);
    let nodes = survey.places.keys().filter(asked).map(|name| {
        let case = Case {
            snapshot,
            survey: &survey,
            rules: &rules,
            busy: &busy,
            name,
            place: &survey.places[name],
        };
        one(&case)
    });
    let nodes: Vec<NodeAnswer> = nodes.collect();
    Answer::new(snapshot, &survey, nodes, notes(snapshot, &survey))
}

/// Where nodes may not be read, those that pods speak of are taken to be there and to fit.
fn assume_nodes(survey: &mut Survey<'_>) {
    for place in survey.places.values_mut() {
        place.fit = Some(Fit {
            run: true,
            keep: true,
        });
    }
}

fn one(case: &Case<'_>) -> NodeAnswer {
    let finding = find(case);
    let node = case.node();
    let checks = node.map(|node| misplaced::checks(case.rules, &node.view));
    let pods = case.place.pods.iter().map(|s| pod::describe(case, s));
    let mut answer = NodeAnswer::new(case.name, finding);
    answer.checks = checks.unwrap_or_default();
    answer.pods = pods.collect();
    answer.remarks = remarks(case);
    answer
}

fn find(case: &Case<'_>) -> Finding {
    let Some(fit) = case.place.fit else {
        return absent::node_gone(case);
    };
    if case.snapshot.daemon_set.terminating && !case.place.pods.is_empty() {
        return Finding::new(
            Verdict::Lingers,
            Cause::DaemonSetDeleted,
            "the DaemonSet is being deleted, and this pod with it",
        );
    }
    if !fit.run {
        return misplaced::find(case, fit);
    }
    let Some(standing) = case.foremost() else {
        return absent::find(case);
    };
    if standing.available && !standing.leaves() {
        return turn::find(case, standing);
    }
    pod::find(case, standing)
}

/// What else is odd about a node.
fn remarks(case: &Case<'_>) -> Vec<String> {
    let mut remarks = Vec::new();
    let staying = case.place.pods.iter().filter(|s| !s.leaves()).count();
    let doomed = case.place.pods.iter().filter(|s| s.doomed).count();
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
    if case.node().is_some_and(|node| node.view.unschedulable) {
        remarks.push("the node is cordoned, which daemon pods do not mind".to_owned());
    }
    remarks
}

/// What is to be said of the DaemonSet as a whole.
fn notes(snapshot: &Snapshot, survey: &Survey<'_>) -> Vec<Note> {
    let mut notes = absent::notes(snapshot);
    notes.extend(turn::notes(snapshot, survey));
    let unread = snapshot.unread.iter();
    notes.extend(unread.map(|what| Note::new("not-readable", what.clone())));
    notes
}
