//! The revisions of a DaemonSet and what became of them: for `kennel rollout history`.

use std::fmt::Write as _;

use kennel_types::Timestamp;
use serde::Serialize;

use super::outline::Outline;
use super::state::{Phase, StageTimes, State, Verdict};
use crate::daemonset::history::Revision;
use crate::why::human_duration;

/// The version of the format. Fields may be added; none are removed or changed.
const SCHEMA: &str = "kennel-rollout-history/1";

/// A revision and when its object was created.
#[derive(Clone, Debug)]
pub struct DatedRevision {
    pub revision: Revision,
    pub created: Option<Timestamp>,
    /// From `kubernetes.io/change-cause`.
    pub cause: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// The highest is the newest, as with `kubectl rollout history`.
    pub revision: i64,
    pub hash: String,
    /// It is the revision of the present template.
    pub target: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<Timestamp>,
    /// When its phase began: for a verdict, when it was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// From its creation to its verdict. Not for later attempts, whose beginning is not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub took_seconds: Option<u64>,
    /// The stages of its last attempt, in the order in which they began.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageEntry>,
    /// Why it has failed or waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change_cause: Option<String>,
}

/// When a stage was the present one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StageEntry {
    /// Counted from 1.
    pub stage: usize,
    pub began: Timestamp,
    /// Absent for the present stage, and for the last one of a rollout that a newer template has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub took_seconds: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct History {
    pub schema: &'static str,
    pub namespace: String,
    pub name: String,
    /// The oldest first.
    pub revisions: Vec<Entry>,
    #[serde(skip)]
    now: Timestamp,
}

impl History {
    pub fn of(outline: &Outline<'_>, revisions: &[DatedRevision]) -> Self {
        let set = outline.daemon_set;
        let owned = revisions
            .iter()
            .filter(|dated| dated.revision.controller.as_ref() == Some(&set.uid));
        let mut entries: Vec<Entry> = owned.map(|dated| entry(outline, dated)).collect();
        entries.sort_by_key(|entry| entry.revision);
        Self {
            schema: SCHEMA,
            namespace: set.namespace.to_string(),
            name: set.name.to_string(),
            revisions: entries,
            now: outline.now,
        }
    }

    pub fn text(&self) -> String {
        let head = [
            "REVISION", "HASH", "VERDICT", "ATTEMPT", "AGE", "TOOK", "STAGES", "REASON",
        ];
        let mut rows = vec![head.map(str::to_owned)];
        rows.extend(self.revisions.iter().map(|entry| self.row(entry)));
        let widths: Vec<usize> = (0..head.len())
            .map(|column| rows.iter().map(|row| row[column].len()).max().unwrap_or(0))
            .collect();
        let mut out = format!("DaemonSet {}/{}\n", self.namespace, self.name);
        for row in &rows {
            let cells = row.iter().zip(&widths);
            let cells = cells.map(|(cell, width)| format!("{cell:width$}"));
            let line = cells.collect::<Vec<String>>().join("  ");
            // Writing to a String cannot fail.
            let _ = writeln!(out, "{}", line.trim_end());
        }
        out
    }

    /// `1: 6m, 2: 3m so far`.
    fn stages(&self, entry: &Entry) -> Option<String> {
        let goes_on = entry.verdict == Some(Verdict::Progressing);
        let text = |times: &StageEntry| {
            let took = times.took_seconds.map(std::time::Duration::from_secs);
            let took = match took.map(human_duration) {
                Some(took) => took,
                None if goes_on => {
                    let so_far = self.now.saturating_since(times.began);
                    format!("{} so far", human_duration(so_far))
                }
                None => "-".to_owned(),
            };
            format!("{}: {took}", times.stage)
        };
        let all: Vec<String> = entry.stages.iter().map(text).collect();
        (!all.is_empty()).then(|| all.join(", "))
    }

    fn row(&self, entry: &Entry) -> [String; 8] {
        let none = || "-".to_owned();
        let verdict = entry.verdict.map_or("-", Verdict::as_str).to_owned();
        let verdict = if entry.target {
            format!("{verdict} (target)")
        } else {
            verdict
        };
        let age = entry
            .created
            .map(|created| self.now.saturating_since(created));
        let took = entry.took_seconds.map(std::time::Duration::from_secs);
        let reason = entry.reason.clone().or_else(|| entry.change_cause.clone());
        [
            entry.revision.to_string(),
            entry.hash.clone(),
            verdict,
            entry
                .attempt
                .map_or_else(none, |attempt| attempt.to_string()),
            age.map_or_else(none, human_duration),
            took.map_or_else(none, human_duration),
            self.stages(entry).unwrap_or_else(none),
            reason.unwrap_or_default(),
        ]
    }
}

fn entry(outline: &Outline<'_>, dated: &DatedRevision) -> Entry {
    let revision = &dated.revision;
    let record = revision.record.owned_by(&outline.daemon_set.uid);
    let state = record.state.as_ref();
    let ended = state
        .filter(|state| matches!(state.phase, Phase::Complete | Phase::Held) && state.attempt == 1);
    let took = ended.zip(dated.created);
    let took = took.map(|(state, created)| state.since.saturating_since(created));
    Entry {
        revision: revision.revision,
        hash: revision.hash().to_owned(),
        target: outline
            .target
            .is_some_and(|target| target.uid == revision.uid),
        verdict: record.verdict,
        phase: state.map(|state| state.phase),
        attempt: state.map(|state| state.attempt),
        stage: state.map(|state| state.stage).filter(|stage| *stage > 0),
        created: dated.created,
        since: state.map(|state| state.since),
        took_seconds: took.map(|took| took.as_secs()),
        stages: state.map_or_else(Vec::new, stages),
        reason: state.and_then(|state| state.reason.as_ref().map(|reason| reason.message.clone())),
        change_cause: dated.cause.clone(),
    }
}

fn stages(state: &State) -> Vec<StageEntry> {
    let entry = |times: &StageTimes| StageEntry {
        stage: times.stage,
        began: times.began,
        ended: times.ended,
        took_seconds: times
            .ended
            .map(|ended| ended.saturating_since(times.began).as_secs()),
    };
    state.stages.iter().map(entry).collect()
}
