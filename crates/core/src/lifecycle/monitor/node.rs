//! What the monitor keeps of one node.

use std::sync::Arc;
use std::time::Duration;

use crate::lifecycle::NodeFacts;
use crate::lifecycle::conditions::Says;
use crate::lifecycle::taints;
use crate::lifecycle::zones::Standing;

/// A write that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Write {
    /// Its conditions become unknown.
    Unknown {
        /// It was ready until then.
        was_ready: bool,
    },
    /// Its taints change.
    Taints,
}

/// Whether there may be a write.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Hand {
    Free,
    /// This is under way.
    Writing(Write),
    /// This version was made and has not been seen yet.
    Awaiting(Arc<str>),
}

/// One node.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) facts: NodeFacts,
    /// When it last gave a sign of life.
    pub(super) heard: Duration,
    /// When somebody looks whether it has fallen silent.
    pub(super) look_at: Duration,
    /// It has.
    pub(super) overdue: bool,
    /// What its lease says of when it was renewed.
    pub(super) renewed: Option<i64>,
    /// How it counts in its zone.
    pub(super) standing: Standing,
    /// It waits for its turn to have its pods driven off.
    pub(super) queued: bool,
    /// It has had its turn.
    pub(super) granted: bool,
    hand: Hand,
    /// That it became unknown was asked for, and the answer got lost.
    unsure: bool,
}

impl Entry {
    pub(super) fn new(facts: NodeFacts, now: Duration) -> Self {
        let standing = standing(&facts, false);
        Self {
            facts,
            heard: now,
            look_at: Duration::ZERO,
            overdue: false,
            renewed: None,
            standing,
            queued: false,
            granted: false,
            hand: Hand::Free,
            unsure: false,
        }
    }

    /// Takes the facts as they are now. Are they a sign of life? `Unknown` is never the node's own word.
    pub(super) fn saw(&mut self, facts: NodeFacts) -> bool {
        let before = std::mem::replace(&mut self.facts, facts);
        if let Hand::Awaiting(version) = &self.hand
            && includes(&self.facts.version, version)
        {
            self.hand = Hand::Free;
        }
        if taints::is_evicting(&self.facts) || !taints::should_evict(self.facts.conditions) {
            self.granted = false;
        }
        let ready = self.facts.conditions.ready();
        let said = (self.facts.heartbeat, ready) != (before.heartbeat, before.conditions.ready());
        said && matches!(ready, Some(Says::True | Says::False))
    }

    /// How it counts in its zone.
    pub(super) fn stands(&self) -> Standing {
        standing(&self.facts, self.overdue)
    }

    /// Should its pods be driven off, and are they not yet?
    pub(super) fn wants_turn(&self) -> bool {
        taints::should_evict(self.facts.conditions)
            && !taints::is_evicting(&self.facts)
            && !self.granted
    }

    /// Nothing is under way, and what we know includes all that we did.
    pub(super) fn is_free(&self) -> bool {
        self.hand == Hand::Free
    }

    /// This is under way from now on.
    pub(super) fn writes(&mut self, write: Write) {
        self.hand = Hand::Writing(write);
    }

    /// What was under way is done. Returns what it was.
    pub(super) fn wrote(&mut self, version: &Arc<str>) -> Option<Write> {
        let seen = includes(&self.facts.version, version);
        let next = if seen {
            Hand::Free
        } else {
            Hand::Awaiting(version.clone())
        };
        self.unsure = false;
        match std::mem::replace(&mut self.hand, next) {
            Hand::Writing(write) => Some(write),
            Hand::Free | Hand::Awaiting(_) => None,
        }
    }

    /// What was under way has failed, or its answer got lost.
    pub(super) fn failed(&mut self) {
        let write = std::mem::replace(&mut self.hand, Hand::Free);
        self.unsure |= write == Hand::Writing(Write::Unknown { was_ready: true });
    }

    /// Its uid, if it has become unknown by a write of ours that seemed to fail. Says so once.
    pub(super) fn silenced_after_all(&mut self) -> Option<Arc<str>> {
        let unknown = self.facts.conditions.ready() == Some(Says::Unknown);
        let after_all = self.unsure && unknown && self.is_free();
        self.unsure &= !after_all;
        after_all.then(|| self.facts.uid.clone())
    }
}

fn standing(facts: &NodeFacts, overdue: bool) -> Standing {
    Standing {
        zone: facts.zone.clone(),
        excluded: facts.excluded,
        well: !overdue && facts.conditions.ready() == Some(Says::True),
    }
}

/// Is one version the other, or later?
fn includes(version: &str, other: &str) -> bool {
    let number = |version: &str| version.parse::<u64>().ok();
    version == other
        || number(version)
            .zip(number(other))
            .is_some_and(|(one, other)| one >= other)
}
