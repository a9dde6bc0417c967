//! Objects as the garbage collector sees them: identity, owners and finalizers.

use std::collections::BTreeMap;
use std::sync::Arc;

/// The finalizer of an object that is deleted in the foreground.
pub const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer of an object whose dependents are orphaned.
pub const ORPHAN: &str = "orphan";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KindId(usize);

impl KindId {
    /// Kinds are numbered from 0 in the order in which they were added.
    pub fn place(self) -> usize {
        self.0
    }
}

/// The kinds of the API server.
#[derive(Clone, Debug, Default)]
pub(super) struct Kinds {
    by_name: BTreeMap<(String, String), KindId>,
    namespaced: Vec<bool>,
}

impl Kinds {
    pub(super) fn add(&mut self, api_version: &str, kind: &str, namespaced: bool) -> KindId {
        let id = KindId(self.namespaced.len());
        self.namespaced.push(namespaced);
        let name = (api_version.to_owned(), kind.to_owned());
        self.by_name.insert(name, id);
        id
    }

    /// The kind of an owner reference; `None` if the API server does not have it.
    pub(super) fn find(&self, owner: &OwnerRef) -> Option<KindId> {
        let name = (owner.api_version.to_string(), owner.kind.to_string());
        self.by_name.get(&name).copied()
    }

    pub(super) fn is_namespaced(&self, kind: KindId) -> bool {
        self.namespaced[kind.0]
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OwnerRef {
    pub api_version: Arc<str>,
    pub kind: Arc<str>,
    pub name: Arc<str>,
    /// Identifies the owner.
    pub uid: Arc<str>,
    /// `blockOwnerDeletion`.
    pub block: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    pub kind: KindId,
    /// Empty for cluster-scoped objects.
    pub namespace: Arc<str>,
    pub name: Arc<str>,
    pub uid: Arc<str>,
    /// The resource version.
    pub version: Arc<str>,
    pub owners: Vec<OwnerRef>,
    pub finalizers: Vec<Arc<str>>,
    pub deleting: bool,
}

/// The deletion state of an object, for its dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It is not being deleted.
    Alive,
    /// It is being deleted in the background.
    Background,
    /// Its dependents are orphaned before it is deleted.
    Orphaning,
    /// Its dependents are deleted first.
    Foreground,
}

impl Item {
    pub(super) fn phase(&self) -> Phase {
        let has = |name: &str| self.finalizers.iter().any(|f| **f == *name);
        match self.deleting {
            false => Phase::Alive,
            true if has(ORPHAN) => Phase::Orphaning,
            true if has(FOREGROUND) => Phase::Foreground,
            true => Phase::Background,
        }
    }

    /// Whether the owner with this uid waits for it in a foreground deletion.
    pub(super) fn blocks(&self, owner: &str) -> bool {
        self.owners.iter().any(|o| o.block && *o.uid == *owner)
    }
}
