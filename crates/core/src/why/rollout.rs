//! Nodes with an available pod: of the current template, or of an old one and what its update waits for.

use super::answer::{Cause, Note, Verdict};
use super::finding::Finding;
use super::{Case, Snapshot, SurveyedPod, pod, staged};
use crate::daemonset::survey::Survey;
use crate::daemonset::view::Strategy;
use crate::natural;
use crate::rollout::budget_wait::NAMED;
use crate::rollout::outline::Outline;

pub(super) fn find(case: &Case<'_>, standing: &SurveyedPod<'_>) -> Finding {
    let mut finding = template_finding(case, standing);
    finding.pod = Some(standing.pod.name.to_string());
    finding
}

fn template_finding(case: &Case<'_>, standing: &SurveyedPod<'_>) -> Finding {
    if let Some(finding) = staged::find(case, standing) {
        return finding;
    }
    let runs = |cause, message: String| Finding::new(Verdict::Runs, cause, message);
    if standing.updated {
        return runs(Cause::UpToDate, "runs".to_owned());
    }
    let new = case
        .place
        .pods
        .iter()
        .find(|s| s.updated && !s.terminating());
    if let Some(new) = new {
        let why = pod::find(case, new);
        let message = format!(
            "runs the old template; the new pod beside it is not available: {}",
            why.message
        );
        return Finding {
            remedy: why.remedy,
            log: why.log,
            ..runs(Cause::NewPodNotAvailable, message).since(why.since)
        };
    }
    let set = &case.snapshot.daemon_set;
    if set.strategy.is_on_delete() {
        let message = "runs the old template, until its pod is deleted (updateStrategy OnDelete)";
        let (namespace, name) = (&standing.pod.namespace, &standing.pod.name);
        return runs(Cause::OldTemplate, message.to_owned())
            .remedy(format!("kubectl delete pod -n {namespace} {name}"));
    }
    match case.survey.budget {
        None => runs(
            Cause::RolloutStopped,
            "runs the old template; maxUnavailable or maxSurge cannot be read, so nothing is rolled out"
                .to_owned(),
        ),
        Some(budget) => waiting(case, budget),
    }
}

/// The nodes that use up the rollout budget. With a policy, nodes that are down may use none (R4.1).
pub(super) fn busy<'a>(
    snapshot: &Snapshot,
    survey: &'a Survey<'_>,
    outline: &Outline<'_>,
) -> Vec<&'a str> {
    let surges = snapshot.daemon_set.strategy.surges();
    let skipped = |name: &str| {
        let node = outline.node(name);
        node.is_some_and(|(_, node)| node.is_skipped(outline.policy.as_ref()))
    };
    let counts = |place: &super::SurveyedNode<'_>| {
        if surges {
            place.rollout.surge
        } else {
            place.rollout.unavailable
        }
    };
    let busy = survey.nodes.iter().filter(|(_, place)| counts(place));
    let busy = busy.map(|(name, _)| &**name).filter(|name| !skipped(name));
    let mut busy: Vec<&str> = busy.collect();
    busy.sort_by(|a, b| natural::compare(a, b));
    busy
}

fn waiting(case: &Case<'_>, (unavailable, surge): (i64, i64)) -> Finding {
    let (allowed, limit, what) = if case.snapshot.daemon_set.strategy.surges() {
        (surge, "maxSurge", "with a new pod beside the old one")
    } else {
        (unavailable, "maxUnavailable", "without an available pod")
    };
    let count = i64::try_from(case.busy.len()).unwrap_or(i64::MAX);
    let message = if case.place.awaits_budget && count >= allowed {
        format!(
            "runs the old template and waits for its turn: {limit} allows {allowed} {} {what}, \
             and that is {}",
            if allowed == 1 { "node" } else { "nodes" },
            names(case.busy)
        )
    } else {
        "runs the old template; its turn comes next".to_owned()
    };
    Finding::new(Verdict::Runs, Cause::WaitsForBudget, message)
}

fn names(busy: &[&str]) -> String {
    let first = busy[..busy.len().min(NAMED)].join(", ");
    match busy.len().saturating_sub(NAMED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

pub(super) fn notes(snapshot: &Snapshot, survey: &Survey<'_>) -> Vec<Note> {
    let counters = &survey.counters;
    let old = counters.current - counters.updated;
    if old <= 0 || snapshot.daemon_set.terminating {
        return Vec::new();
    }
    let how = match snapshot.daemon_set.strategy {
        Strategy::OnDelete { .. } => "OnDelete: each stays until it is deleted",
        Strategy::RollingUpdate { .. } => "RollingUpdate",
    };
    let message = format!(
        "{} of {} nodes have a pod of the current template ({how})",
        counters.updated, counters.desired
    );
    vec![Note::new("rollout", message)]
}
