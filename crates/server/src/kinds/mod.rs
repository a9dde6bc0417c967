//! What is particular to each kind: defaults, what the server sets itself, and validation.
//!
//! One file (or folder) per kind, each with a unit struct that implements [`Strategy`]. Trees that
//! come here are already decoded and pruned: field types are right, unknown fields and nulls are
//! gone. This room reads no store and no clock; what needs either lives in `admit` and `verbs`.

pub mod amount;
pub mod configmap;
pub mod controllerrevision;
pub mod csi;
pub mod csr;
pub mod daemonset;
pub mod endpoints;
pub mod endpointslice;
pub mod event;
pub mod lease;
pub mod meta;
pub mod namespace;
pub mod node;
pub mod persistentvolume;
pub mod persistentvolumeclaim;
pub mod pod;
pub mod priorityclass;
pub mod rbac;
pub mod runtimeclass;
pub mod secret;
pub mod selector;
pub mod service;
pub mod serviceaccount;
pub mod show;
#[cfg(test)]
pub(crate) mod testing;
pub mod tree;

use kennel_store::Durability;
use serde_json::Value;

use crate::field::FieldError;

/// The rules of one kind. Every hook has the answer that fits a plain kind.
///
/// On create the order is `default`, `prepare_create`, admission, `validate_create`; on update
/// `default`, `prepare_update`, admission, `validate_update`. The `metadata` rules that all kinds
/// share (names, labels, owner references, immutable metadata) are applied by the caller through
/// `kinds::meta`, not by each strategy.
pub trait Strategy: Sync {
    /// Fills in what the user left out. Must be idempotent.
    fn default(&self, _object: &mut Value) {}

    /// Drops what users may not set on create (status), and sets what the server owns
    /// (generation 1, `status.phase`).
    fn prepare_create(&self, _object: &mut Value) {}

    /// Takes from `old` what an update may not touch (status), and raises the generation.
    fn prepare_update(&self, _new: &mut Value, _old: &Value) {}

    /// Takes everything but the status (and, where allowed, labels and annotations) from `old`.
    fn prepare_status_update(&self, _new: &mut Value, _old: &Value) {}

    /// What is wrong with a new object.
    fn validate_create(&self, _object: &Value) -> Vec<FieldError> {
        Vec::new()
    }

    /// What is wrong with `new` as the successor of `old`.
    fn validate_update(&self, _new: &Value, _old: &Value) -> Vec<FieldError> {
        Vec::new()
    }

    /// What is wrong with `new` as the result of a status write over `old`.
    fn validate_status_update(&self, _new: &Value, _old: &Value) -> Vec<FieldError> {
        Vec::new()
    }

    /// What deserves a `Warning` header though it is accepted. `old` is absent on create.
    fn warnings(&self, _object: &Value, _old: Option<&Value>) -> Vec<String> {
        Vec::new()
    }

    /// Prepares a write through the subresource that only this kind has (`approval`, `finalize`). `now`
    /// is the time of the write as metadata has it.
    fn prepare_subresource_update(&self, _new: &mut Value, _old: &Value, _now: &str) {}

    /// What is wrong with `new` as the result of such a write over `old`.
    fn validate_subresource_update(&self, _new: &Value, _old: &Value) -> Vec<FieldError> {
        Vec::new()
    }

    /// Whether an update must be on disk before it is answered.
    fn durability(&self, _new: &Value, _old: &Value) -> Durability {
        Durability::Synced
    }

    /// How many seconds an object exists on after its deletion was requested, with `asked` as the
    /// request's own wish.
    fn grace_seconds(&self, _object: &Value, _asked: Option<i64>) -> i64 {
        0
    }

    /// Marks an object whose deletion begins.
    fn begin_deletion(&self, _object: &mut Value) {}

    /// Whether a field of this kind holds up a deletion, as `metadata.finalizers` does for all kinds.
    fn blocks_deletion(&self, _object: &Value) -> bool {
        false
    }
}

/// A kind without rules of its own.
#[derive(Debug)]
pub struct Plain;

impl Strategy for Plain {}
