//! Which nodes failed, when, and why.

use std::collections::BTreeMap;
use std::sync::Arc;

use kennel_core::picture::CellState;
use kennel_types::Timestamp;

use super::{Causes, Failure};
use crate::live::{Set, View};

/// The failures of each node, in the order in which nodes failed first: one entry per node.
pub struct Failures {
    began: Timestamp,
    all: Vec<Failure>,
    /// Of each entry, what else is known.
    details: Vec<FailureDetail>,
    /// By index of the node in the view: its entry.
    entries: BTreeMap<usize, usize>,
}

/// What is known of a failure beside what is told.
struct FailureDetail {
    /// What the picture says.
    reason: String,
    /// The pod that failed.
    pod: Option<Arc<str>>,
    /// The pod has said why: what is read later is about what it does then.
    explained: bool,
}

impl Failures {
    /// Those from now on.
    pub fn new(began: Timestamp) -> Self {
        Self {
            began,
            all: Vec::new(),
            details: Vec::new(),
            entries: BTreeMap::new(),
        }
    }

    /// Notes which nodes fail now, or did since the last time.
    pub fn note(&mut self, view: &View, set: &Set, now: Timestamp) {
        let at = self.at(now);
        let failed = CellState::Failed.letter();
        let letters = set.picture().letters();
        for (node, entry) in &self.entries {
            let failure = &mut self.all[*entry];
            if letters.get(*node) != Some(&failed) && failure.until.is_none() {
                failure.until = Some(at);
            }
        }
        let fail = letters
            .iter()
            .enumerate()
            .filter(|(_, letter)| **letter == failed);
        for (node, _) in fail {
            let entry = self.entries.get(&node).copied();
            if entry.is_some_and(|entry| self.all[entry].until.is_none()) {
                continue;
            }
            let failed = set.failed().get(&node);
            let cause = failed.filter(|failed| failed.at >= self.began);
            let cause = cause.and_then(|failed| failed.cause.clone());
            let reason = set.picture().reason(node).map(|reason| reason.to_string());
            let message = text(reason.as_deref().unwrap_or_default(), cause.as_deref());
            let detail = FailureDetail {
                reason: reason.unwrap_or_default(),
                pod: set
                    .picture()
                    .cell(view.nodes(), node)
                    .and_then(|cell| cell.pod),
                explained: cause.is_some(),
            };
            if let Some(entry) = entry {
                self.all[entry].until = None;
                self.all[entry].message = message;
                self.details[entry] = detail;
            } else {
                self.push(view, node, (at, None), message, detail);
            }
        }
        for (node, failed) in set.failed() {
            if failed.at >= self.began && !self.entries.contains_key(node) {
                let at = self.at(failed.at);
                let reason = failed.reason.to_string();
                let message = text(&reason, failed.cause.as_deref());
                let detail = FailureDetail {
                    reason,
                    pod: None,
                    explained: failed.cause.is_some(),
                };
                self.push(view, *node, (at, Some(at)), message, detail);
            }
        }
    }

    fn push(
        &mut self,
        view: &View,
        node: usize,
        (at, until): (u64, Option<u64>),
        message: String,
        detail: FailureDetail,
    ) {
        let name = view.nodes().name(node);
        self.entries.insert(node, self.all.len());
        self.details.push(detail);
        self.all.push(Failure {
            node: name.map(ToString::to_string).unwrap_or_default(),
            at: Some(at),
            until,
            message,
        });
    }

    fn at(&self, time: Timestamp) -> u64 {
        u64::try_from(time.millis_since(self.began)).unwrap_or(0)
    }

    /// Enters the causes that are known by now: of nodes that still fail, and of those that have stopped to if the cause is of
    /// the pod that failed.
    pub fn note_causes(&mut self, causes: &Causes) {
        for (failure, detail) in self.all.iter_mut().zip(&self.details) {
            let Some(cause) = causes.get(&failure.node) else {
                continue;
            };
            let same = detail.pod.is_some() && cause.pod.as_deref() == detail.pod.as_deref();
            if !detail.explained && (failure.until.is_none() || same) {
                failure.message = text(&detail.reason, Some(&cause.message));
            }
        }
    }

    pub fn all(&self) -> &[Failure] {
        &self.all
    }

    /// The names of the nodes that fail now.
    pub fn present(&self) -> Vec<String> {
        let present = self.all.iter().filter(|one| one.until.is_none());
        present.map(|one| one.node.clone()).collect()
    }

    pub(super) fn into_all(self) -> Vec<Failure> {
        self.all
    }
}

/// What the picture says, and the cause if it is known.
pub(super) fn text(reason: &str, cause: Option<&str>) -> String {
    match cause {
        Some(cause) => format!("{reason}; {cause}"),
        None => reason.to_owned(),
    }
}
