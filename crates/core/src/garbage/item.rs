//! Objects as the collector knows them: who they are, who owns them, what keeps them.

use std::collections::BTreeMap;
use std::sync::Arc;

/// The finalizer of an owner that goes after its dependents.
pub const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer of an owner that leaves its dependents behind.
pub const ORPHAN: &str = "orphan";

/// A kind, as a place in [`Kinds`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KindId(usize);

impl KindId {
    /// Its place: kinds are numbered from 0 in the order in which they were added.
    pub fn place(self) -> usize {
        self.0
    }
}

/// The kinds that the API has.
#[derive(Clone, Debug, Default)]
pub(super) struct Kinds {
    by_name: BTreeMap<(String, String), KindId>,
    namespaced: Vec<bool>,
}

impl Kinds {
    /// One more kind.
    pub(super) fn add(&mut self, api_version: &str, kind: &str, namespaced: bool) -> KindId {
        let id = KindId(self.namespaced.len());
        self.namespaced.push(namespaced);
        let name = (api_version.to_owned(), kind.to_owned());
        self.by_name.insert(name, id);
        id
    }

    /// The kind that an owner reference means; nothing if the API does not have it.
    pub(super) fn find(&self, owner: &OwnerRef) -> Option<KindId> {
        let name = (owner.api_version.to_string(), owner.kind.to_string());
        self.by_name.get(&name).copied()
    }

    /// Do its objects live in namespaces?
    pub(super) fn is_namespaced(&self, kind: KindId) -> bool {
        self.namespaced[kind.0]
    }
}

/// A reference to an owner.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OwnerRef {
    /// Group and version.
    pub api_version: Arc<str>,
    /// Kind.
    pub kind: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// Uid: the one thing that decides who is meant.
    pub uid: Arc<str>,
    /// An owner that goes after its dependents waits for this one.
    pub block: bool,
}

/// An object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its kind.
    pub kind: KindId,
    /// Namespace; empty for objects outside namespaces.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// Uid.
    pub uid: Arc<str>,
    /// The version of it that all this is about.
    pub version: Arc<str>,
    /// Its owners.
    pub owners: Vec<OwnerRef>,
    /// What keeps it from going.
    pub finalizers: Vec<Arc<str>>,
    /// Its deletion has begun.
    pub deleting: bool,
}

/// How an object stands towards its dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It lives, as far as they are concerned.
    Alive,
    /// It is being deleted, and that does not concern them before it is gone.
    Leaving,
    /// It goes once it has none.
    Orphaning,
    /// They go first.
    Foreground,
}

impl Item {
    pub(super) fn phase(&self) -> Phase {
        let has = |name: &str| self.finalizers.iter().any(|f| **f == *name);
        match self.deleting {
            false => Phase::Alive,
            true if has(ORPHAN) => Phase::Orphaning,
            true if has(FOREGROUND) => Phase::Foreground,
            true => Phase::Leaving,
        }
    }

    /// Does the owner with this uid have to wait for it?
    pub(super) fn blocks(&self, owner: &str) -> bool {
        self.owners.iter().any(|o| o.block && *o.uid == *owner)
    }
}
