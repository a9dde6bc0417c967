//! Where a rollout stands, on one screen: for `kennel rollout status`.

use std::fmt::Write as _;

use kennel_types::Timestamp;
use serde::Serialize;

use super::assess::{Assessment, Outcome, ReportedPhase, assess};
use super::outline::Outline;
use super::plan::{Course, PlannedStage, StageState, bake_left, bakes_left, planned};
use super::policy::Policy;
use super::sentence::Sentence;
use super::state::{Phase, Standing};
use super::text::{nodes_text, reference};
use crate::why::human_duration;

/// The version of the format. Fields may be added; none are removed or changed.
const SCHEMA: &str = "kennel-rollout/1";
/// How many nodes with problems are shown.
const PROBLEMS_MAX: usize = 10;

/// Numbers of nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// The rollout's nodes.
    pub total: usize,
    /// Their turn has come.
    pub admitted: usize,
    /// Admitted, with an available pod of the target.
    pub healthy: usize,
    /// Admitted, with a pod of the target that shows a failure or what becomes one.
    pub failing: usize,
    /// Not ready.
    pub down: usize,
    /// They have a pod of the target.
    pub on_target: usize,
}

/// A node that does not get on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    pub node: String,
    pub message: String,
}

/// A command that a person may want now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Suggestion {
    pub command: String,
    pub effect: String,
    /// The effect by its code.
    #[serde(skip)]
    pub said: Sentence,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    pub schema: &'static str,
    pub namespace: String,
    pub name: String,
    pub outcome: Outcome,
    pub phase: ReportedPhase,
    pub message: String,
    /// The message by its code.
    #[serde(skip)]
    pub said: Sentence,
    /// Whether the DaemonSet or its Namespace has a policy.
    pub policy: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stable: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// Counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<usize>,
    /// When the phase began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// If nothing but bakes takes time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earliest_end: Option<Timestamp>,
    /// Why it has failed or waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<super::state::Reason>,
    pub nodes: Counts,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<PlannedStage>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<Suggestion>,
    /// What remains of the present bake, for the text.
    #[serde(skip)]
    bake_left: Option<String>,
    #[serde(skip)]
    now: Timestamp,
}

impl Status {
    /// `explain` says why a node's pod is not available.
    pub fn of(outline: &Outline<'_>, explain: impl Fn(&str) -> Option<String>) -> Self {
        let policy = outline.policy.as_ref();
        let counts = counts(outline, policy);
        let Assessment {
            outcome,
            phase,
            said,
        } = assess(outline, counts);
        let state = outline.state();
        let under_way = outline.standing == Standing::Staged;
        let stages = policy.filter(|_| under_way);
        let stages = stages.map(|policy| planned(outline, policy, Course::Present));
        let stages = stages.unwrap_or_default();
        let present = stages.iter().find(|s| s.state == StageState::Present);
        let left = present.filter(|_| outline.phase() == Some(Phase::Baking));
        let left = left.map(|stage| bake_left(outline, Course::Present, stage));
        let ends = matches!(
            outline.phase(),
            Some(Phase::Updating | Phase::Baking | Phase::AwaitingPromotion)
        );
        let earliest_end = (under_way && ends && policy.is_some())
            .then(|| outline.now + bakes_left(outline, Course::Present, &stages));
        Self {
            schema: SCHEMA,
            namespace: outline.daemon_set.namespace.to_string(),
            name: outline.daemon_set.name.to_string(),
            outcome,
            phase,
            message: said.to_string(),
            said,
            policy: policy.is_some(),
            target: outline.target.map(|target| target.hash().to_owned()),
            stable: state.and_then(|state| state.stable.clone()),
            attempt: state.map(|state| state.attempt),
            stage: state.map(|state| state.stage).filter(|stage| *stage > 0),
            since: state.map(|state| state.since),
            earliest_end,
            reason: state.and_then(|state| state.reason.clone()),
            nodes: counts,
            stages,
            problems: problems(outline, policy, explain),
            next: suggestions(outline),
            bake_left: left.map(human_duration),
            now: outline.now,
        }
    }

    /// For people, on one screen.
    pub fn text(&self) -> String {
        let mut out = format!(
            "DaemonSet {}/{}: {}\n",
            self.namespace, self.name, self.message
        );
        // Writing to a String cannot fail.
        if let Some(target) = &self.target {
            let attempt = self.attempt.filter(|attempt| *attempt > 1);
            let attempt = attempt.map(|number| format!(" (attempt {number})"));
            let _ = writeln!(out, "  target   {target}{}", attempt.unwrap_or_default());
        }
        if let Some(stable) = self.stable.as_ref().filter(|_| self.stable != self.target) {
            let _ = writeln!(out, "  stable   {stable}");
        }
        if let Some(since) = self.since.filter(|_| self.outcome != Outcome::Complete) {
            let ago = human_duration(self.now.saturating_since(since));
            let _ = writeln!(out, "  phase    {} for {ago}", self.phase);
        }
        let _ = writeln!(out, "  nodes    {}", self.counts_text());
        if let Some(end) = self.earliest_end {
            let _ = writeln!(out, "  ends     {end} at the earliest");
        }
        self.write_stages(&mut out);
        if !self.problems.is_empty() {
            out.push('\n');
            for Problem { node, message } in self.problems.iter().take(PROBLEMS_MAX) {
                let _ = writeln!(out, "  {node}: {message}");
            }
            let more = self.problems.len().saturating_sub(PROBLEMS_MAX);
            if more > 0 {
                let _ = writeln!(out, "  and {}", nodes_text(more).replace(' ', " more "));
            }
        }
        if !self.next.is_empty() {
            out.push('\n');
            let width = self.next.iter().map(|next| next.command.len()).max();
            let width = width.unwrap_or(0);
            for Suggestion {
                command, effect, ..
            } in &self.next
            {
                let _ = writeln!(out, "  {command:width$}  # {effect}");
            }
        }
        out
    }

    fn counts_text(&self) -> String {
        let Counts {
            total,
            admitted,
            healthy,
            failing,
            down,
            on_target,
        } = self.nodes;
        let mut parts = vec![total.to_string()];
        if self.stages.is_empty() {
            parts.push(format!("{on_target} with the target"));
        } else {
            parts.push(format!("{admitted} admitted"));
        }
        parts.push(format!("{healthy} healthy"));
        for (count, what) in [(failing, "failing"), (down, "down")] {
            if count > 0 {
                parts.push(format!("{count} {what}"));
            }
        }
        parts.join(", ")
    }

    fn write_stages(&self, out: &mut String) {
        if self.stages.is_empty() {
            return;
        }
        let width = self.stages.iter().map(|stage| stage.policy.len()).max();
        let width = width.unwrap_or(0).max("POLICY".len());
        let _ = writeln!(out, "\n  STAGE  {:width$}  REACHES  STATE", "POLICY");
        for stage in &self.stages {
            let state = match (stage.state, &self.bake_left) {
                (StageState::Done, _) => "done".to_owned(),
                (StageState::PassedOver, _) => "passed over: adds no node".to_owned(),
                (StageState::Ahead, _) if stage.manual => {
                    "ahead, then waits for a person".to_owned()
                }
                (StageState::Ahead, _) => "ahead".to_owned(),
                (StageState::Present, Some(left)) => format!("{}, {left} left", self.phase),
                (StageState::Present, None) => self.phase.to_string(),
            };
            let mark = if stage.state == StageState::Present {
                '>'
            } else {
                ' '
            };
            let (number, policy, reaches) = (stage.stage, &stage.policy, stage.reaches);
            let _ = writeln!(
                out,
                "{mark} {number:<5}  {policy:width$}  {reaches:>7}  {state}"
            );
        }
    }
}

fn counts(outline: &Outline<'_>, policy: Option<&Policy>) -> Counts {
    let count = |which: &dyn Fn(&super::outline::RolloutNode<'_>) -> bool| {
        outline.nodes.iter().filter(|node| which(node)).count()
    };
    Counts {
        total: outline.nodes.len(),
        admitted: count(&|node| node.admitted),
        healthy: count(&|node| node.admitted && node.healthy),
        failing: count(&|node| {
            node.admitted && node.failing && !node.excused && !node.is_skipped(policy)
        }),
        down: count(&|node| node.down),
        on_target: count(&|node| node.on_target),
    }
}

fn problems(
    outline: &Outline<'_>,
    policy: Option<&Policy>,
    explain: impl Fn(&str) -> Option<String>,
) -> Vec<Problem> {
    let waits = outline.budget_wait().is_some();
    let ails = |node: &&super::outline::RolloutNode<'_>| {
        let late = node.admitted && !node.healthy && node.on_target;
        let holds_up = waits && node.uses_budget;
        (node.failing && node.on_target) || (late && !node.is_skipped(policy)) || holds_up
    };
    let nodes = outline.nodes.iter().filter(ails);
    let problem = |node: &super::outline::RolloutNode<'_>| {
        let message = explain(&node.view.name);
        let restarts = || "its containers have restarted too often".to_owned();
        Problem {
            node: node.view.name.to_string(),
            message: message.unwrap_or_else(restarts),
        }
    };
    nodes.map(problem).collect()
}

/// The commands that act on the rollout as it stands.
fn suggestions(outline: &Outline<'_>) -> Vec<Suggestion> {
    let set = outline.daemon_set;
    let reference = reference(&set.namespace, &set.name);
    let stable = outline.state().and_then(|state| state.stable.as_deref());
    let stable = stable.unwrap_or("stable");
    let command = |verb: &str, said: Sentence| Suggestion {
        command: format!("kennel rollout {verb} {reference}"),
        effect: said.to_string(),
        said,
    };
    let promote = |code: &'static str| command("promote", Sentence::new(code));
    let abort = || {
        // Another controller creates the pods then (R11).
        let said = if set.strategy.is_on_delete() {
            Sentence::new("next-stop")
        } else {
            Sentence::new("next-abort").with("stable", &stable)
        };
        command("abort", said)
    };
    let retry = || command("retry", Sentence::new("next-retry"));
    let mut next = Vec::new();
    if outline.commands.freeze.is_some() || outline.commands.pause.is_some() {
        next.push(command("resume", Sentence::new("next-resume")));
    }
    match (outline.standing, outline.phase()) {
        (Standing::Staged, Some(Phase::Baking)) => {
            next.extend([promote("next-end-bake"), abort()]);
        }
        (Standing::Staged, Some(Phase::AwaitingPromotion)) => {
            next.extend([promote("next-promote"), abort()]);
        }
        (Standing::Staged, Some(Phase::Paused)) => {
            next.extend([promote("next-accept"), abort(), retry()]);
        }
        (Standing::Staged, Some(Phase::Updating)) => next.push(abort()),
        (Standing::Back, _) => next.push(retry()),
        _ => {}
    }
    next
}
