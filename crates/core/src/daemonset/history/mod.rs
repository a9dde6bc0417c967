//! Revision history (rule 4): a DaemonSet's templates, stored as ControllerRevisions.
//!
//! ```text
//!   template ─▶ data (the bytes) ─▶ name (hash, collisions) ─▶ object (what to create)
//!   claimed revisions ─▶ reconcile (which is current, what to write) ─▶ prune (what to delete)
//! ```
//!
//! Pure functions; the planner claims revisions (rule 4.1) and requests the writes.

pub mod data;
pub mod name;
pub mod object;
mod prune;
mod reconcile;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

pub use prune::prune;
pub use reconcile::{Reconciled, Step, reconcile};

use super::HASH_LABEL;
use super::event::Object;
use crate::rollout::state::Record;

/// The fields of a ControllerRevision that the rules read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revision {
    pub namespace: Arc<str>,
    pub name: Arc<str>,
    pub uid: Arc<str>,
    /// The uid of the DaemonSet that is its controller.
    pub controller: Option<Arc<str>>,
    pub labels: BTreeMap<String, String>,
    /// The highest is the newest.
    pub revision: i64,
    /// Its data in [`data::canonical`] form, for comparison only: the API's bytes are never written back.
    pub data: Arc<str>,
    pub terminating: bool,
    /// The generation of its template, from its annotation.
    pub template_generation: Option<i64>,
    /// The verdict and state of its rollout.
    pub record: Record,
    /// The resource version.
    pub version: Arc<str>,
}

impl Revision {
    /// What a write to it names.
    pub fn object(&self) -> Object {
        Object {
            name: self.name.clone(),
            uid: self.uid.clone(),
        }
    }

    /// The hash label of its pods: that of the revision, or its own name while it has none (rule 4.2).
    pub fn hash(&self) -> &str {
        self.labels
            .get(HASH_LABEL)
            .map_or(&*self.name, String::as_str)
    }

    /// Its template, if its data has one.
    pub fn template(&self) -> Option<Value> {
        data::template(&self.data)
    }

    /// Whether another version of the same revision is newer, as far as versions are numbers.
    pub fn is_older_than(&self, other: &Self) -> bool {
        let number = |revision: &Self| revision.version.parse::<u64>().ok();
        number(self)
            .zip(number(other))
            .is_some_and(|(own, other)| own < other)
    }
}

#[cfg(test)]
mod fixtures {
    use super::*;

    /// A revision with the hash label `hash-<name>`.
    pub(super) fn revision(name: &str, revision: i64, data: &str) -> Revision {
        Revision {
            namespace: "ns".into(),
            name: name.into(),
            uid: format!("uid-{name}").into(),
            controller: Some("ds-uid".into()),
            labels: BTreeMap::from([(HASH_LABEL.to_owned(), format!("hash-{name}"))]),
            revision,
            data: data.into(),
            terminating: false,
            template_generation: None,
            record: Record::default(),
            version: "".into(),
        }
    }
}
