//! Revision history (spec §4): a DaemonSet's templates, kept as ControllerRevisions.
//!
//! ```text
//!   template ─▶ data (the bytes) ─▶ name (hash, collisions) ─▶ object (what to create)
//!   claimed revisions ─▶ reconcile (which is current, what to write) ─▶ prune (what to forget)
//! ```
//!
//! Pure functions from what is to what should be. Claiming (rule 4.1) follows the rules of pods and
//! is not done here; nothing is written here either.

pub mod data;
mod go;
pub mod name;
pub mod object;
mod prune;
mod reconcile;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use prune::prune;
pub use reconcile::{Reconciled, Step, reconcile};

use super::HASH_LABEL;

/// A ControllerRevision, as far as the rules read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revision {
    /// Namespace.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// Which of all objects that ever had this name it is.
    pub uid: Arc<str>,
    /// The uid of the controller that owns it.
    pub controller: Option<Arc<str>>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Its number: the highest is the newest.
    pub revision: i64,
    /// What it keeps, in the form that [`data::canonical`] gives it. It is for comparing: the bytes
    /// that the API holds are never written again.
    pub data: Arc<str>,
    /// Being deleted.
    pub terminating: bool,
}

impl Revision {
    /// What pods of this revision carry as hash: its label, or its own name while it has none
    /// (rule 4.2).
    pub fn hash(&self) -> &str {
        self.labels
            .get(HASH_LABEL)
            .map_or(&*self.name, String::as_str)
    }
}

#[cfg(test)]
mod fixtures {
    use super::*;

    /// A revision of number `revision` with this data and a hash label like its name.
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
        }
    }
}
