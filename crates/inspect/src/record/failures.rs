//! Which nodes failed, when, and why.

use std::collections::BTreeMap;

use kennel_core::picture::CellState;
use kennel_types::Timestamp;

use super::{Causes, Failure};
use crate::live::{Set, View};

/// The failures of each node, in the order in which nodes failed first: one entry per node.
pub struct Failures {
    began: Timestamp,
    all: Vec<Failure>,
    /// Of each entry, what the picture says.
    reasons: Vec<String>,
    /// By index of the node in the view: its entry.
    entries: BTreeMap<usize, usize>,
}

impl Failures {
    /// Those from now on.
    pub fn new(began: Timestamp) -> Self {
        Self {
            began,
            all: Vec::new(),
            reasons: Vec::new(),
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
            let reason = set.picture().reason(node).map(|reason| reason.to_string());
            let reason = reason.unwrap_or_default();
            match self.entries.get(&node) {
                Some(entry) if self.all[*entry].until.is_none() => {}
                Some(entry) => {
                    self.all[*entry].until = None;
                    self.all[*entry].message.clone_from(&reason);
                    self.reasons[*entry] = reason;
                }
                None => self.push(view, node, (at, None), reason),
            }
        }
        for (node, time, reason) in set.failed() {
            if time >= self.began && !self.entries.contains_key(&node) {
                let at = self.at(time);
                self.push(view, node, (at, Some(at)), reason.to_string());
            }
        }
    }

    fn push(&mut self, view: &View, node: usize, (at, until): (u64, Option<u64>), reason: String) {
        let name = view.nodes().name(node);
        self.entries.insert(node, self.all.len());
        self.reasons.push(reason.clone());
        self.all.push(Failure {
            node: name.map(ToString::to_string).unwrap_or_default(),
            at: Some(at),
            until,
            message: reason,
        });
    }

    fn at(&self, time: Timestamp) -> u64 {
        u64::try_from(time.millis_since(self.began)).unwrap_or(0)
    }

    /// Enters the causes that are known by now.
    pub fn note_causes(&mut self, causes: &Causes) {
        for (failure, reason) in self.all.iter_mut().zip(&self.reasons) {
            let cause = causes.get(&failure.node);
            if let Some(cause) = cause.filter(|_| failure.until.is_none()) {
                failure.message = format!("{reason}; {cause}");
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
