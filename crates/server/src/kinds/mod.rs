//! The strategy of each kind: defaults, the fields that the server sets, and validation.
//!
//! One file (or folder) per kind, each with a unit struct that implements [`Strategy`]. The trees are
//! already decoded and pruned: field types are right, and there are no unknown fields and no nulls.
//! Strategies read neither the store nor a clock; rules that need them are in `admit` and `verbs`.

pub mod amount;
pub(crate) mod check;
pub mod configmap;
pub mod controllerrevision;
pub mod csi;
pub mod csr;
pub mod daemonset;
pub mod endpoints;
pub mod endpointslice;
pub mod event;
pub mod lease;
pub mod limitrange;
pub mod meta;
pub mod namespace;
pub mod networkpolicy;
pub mod node;
pub mod persistentvolume;
pub mod persistentvolumeclaim;
pub mod pod;
pub mod poddisruptionbudget;
pub mod priorityclass;
pub mod rbac;
pub mod resourcequota;
mod rollout_policy;
pub mod runtimeclass;
pub mod secret;
pub mod selector;
pub mod service;
pub mod serviceaccount;
pub mod show;
pub mod storageclass;
#[cfg(test)]
pub(crate) mod testing;

use kennel_store::Durability;
use serde_json::Value;

use crate::field::Errors;
use crate::registry::Part;

/// The rules of one kind. The default of every method is to do nothing.
///
/// On create the order is `default`, `prepare_create`, admission, `validate_create`; on update
/// `default`, `prepare_update`, admission, `validate_update`. The `metadata` rules that all kinds
/// share (names, labels, owner references, immutable metadata) are in [`meta`]; the caller applies
/// them.
pub trait Strategy: Sync {
    /// Sets defaults. Must be idempotent.
    fn default(&self, _object: &mut Value) {}

    /// Removes the fields that users may not set on create (the status), and sets those of the server
    /// (generation 1, `status.phase`).
    fn prepare_create(&self, _object: &mut Value) {}

    /// Copies from `old` what an update may not change (the status), and increments the generation.
    fn prepare_update(&self, _new: &mut Value, _old: &Value) {}

    /// Copies everything but the status (and, where allowed, labels and annotations) from `old`.
    fn prepare_status_update(&self, _new: &mut Value, _old: &Value) {}

    /// The fields that a write of one part cannot change: nobody owns them through it.
    fn reset_fields(&self, part: Part) -> &'static [&'static [&'static str]] {
        match part {
            Part::Main | Part::Finalize | Part::Binding | Part::EphemeralContainers => {
                &[&["status"]]
            }
            Part::Status | Part::Approval => &[&["spec"]],
        }
    }

    /// Whether the server adds fields of its own to what a write of this part sends. Nobody owns those. Of the status,
    /// [`Self::adds_to_status`] says it.
    fn adds_fields(&self, part: Part) -> bool {
        !matches!(part, Part::Status | Part::Binding)
    }

    /// Whether the preparation of a status write adds fields to what was sent. Nobody owns those, either. Few writes leave such
    /// fields out, and the others need no copy of the object.
    fn adds_to_status(&self, _new: &Value, _old: &Value) -> bool {
        false
    }

    /// Validates a new object.
    fn validate_create(&self, _object: &Value) -> Errors {
        Vec::new()
    }

    /// Validates the update from `old` to `new`.
    fn validate_update(&self, _new: &Value, _old: &Value) -> Errors {
        Vec::new()
    }

    /// Validates a write of the status over `old`.
    fn validate_status_update(&self, _new: &Value, _old: &Value) -> Errors {
        Vec::new()
    }

    /// The `Warning` headers of an accepted object. `old` is absent on create.
    fn warnings(&self, _object: &Value, _old: Option<&Value>) -> Vec<String> {
        Vec::new()
    }

    /// Prepares a write through the subresource that only this kind has (`approval`, `finalize`,
    /// `ephemeralcontainers`). `now` is the time of the write as metadata has it.
    fn prepare_subresource_update(&self, _new: &mut Value, _old: &Value, _now: &str) {}

    /// What is wrong with `new` as the result of such a write over `old`.
    fn validate_subresource_update(&self, _new: &Value, _old: &Value) -> Errors {
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

/// The strategy of kinds without rules of their own.
#[derive(Debug)]
pub struct NoRules;

impl Strategy for NoRules {}
