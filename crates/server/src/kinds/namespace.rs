//! The strategy of Namespace.
//!
//! A namespace stays until two lists of finalizers are empty: its `spec.finalizers`, which only
//! the `finalize` subresource may change, and its `metadata.finalizers`. The namespace controller
//! removes its content.

use kennel_types::NamespacePhase;
use serde_json::{Value, json};

use super::meta::check_finalizer;
use super::{Strategy, rollout_policy};
use crate::field::{ErrorList as _, Errors, Path};
use crate::tree::{copy_from_old, default_to, has, list, map, set, text, texts};

/// Label with the namespace's own name, for selectors.
pub const NAME_LABEL: &str = "kubernetes.io/metadata.name";
/// The finalizer that every new namespace gets.
pub const FINALIZER: &str = "kubernetes";

#[derive(Debug)]
pub struct Namespace;

impl Strategy for Namespace {
    fn default(&self, object: &mut Value) {
        let name = text(object, "metadata.name").to_owned();
        if !name.is_empty() {
            let mut labels = map(object, "metadata.labels").clone();
            labels.insert(NAME_LABEL.to_owned(), json!(name));
            set(object, "metadata.labels", Value::Object(labels));
        }
        default_to(object, "status.phase", "Active");
    }

    fn prepare_create(&self, object: &mut Value) {
        set(object, "status", json!({"phase": "Active"}));
        if !texts(object, "spec.finalizers").any(|name| name == FINALIZER) {
            let mut finalizers = list(object, "spec.finalizers").to_vec();
            finalizers.push(json!(FINALIZER));
            set(object, "spec.finalizers", Value::Array(finalizers));
        }
    }

    fn prepare_update(&self, new: &mut Value, old: &Value) {
        copy_from_old(new, old, "spec.finalizers");
        copy_from_old(new, old, "status");
    }

    fn prepare_status_update(&self, new: &mut Value, old: &Value) {
        copy_from_old(new, old, "spec");
    }

    fn validate_create(&self, object: &Value) -> Errors {
        let mut errors = Errors::new();
        let path = Path::new("spec.finalizers");
        for name in texts(object, "spec.finalizers") {
            check_finalizer(&mut errors, name, &path);
        }
        rollout_policy::validate_namespace(&mut errors, object, None);
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Errors {
        let mut errors = Errors::new();
        rollout_policy::validate_namespace(&mut errors, new, Some(old));
        errors
    }

    fn prepare_subresource_update(&self, new: &mut Value, old: &Value, _now: &str) {
        copy_from_old(new, old, "status");
    }

    fn validate_subresource_update(&self, new: &Value, old: &Value) -> Errors {
        let mut errors = Errors::new();
        rollout_policy::validate_namespace(&mut errors, new, Some(old));
        let path = Path::new("spec.finalizers");
        for (i, name) in texts(new, "spec.finalizers").enumerate() {
            check_finalizer(&mut errors, name, &path.index(i));
        }
        errors
    }

    fn begin_deletion(&self, object: &mut Value) {
        set(
            object,
            "status.phase",
            json!(NamespacePhase::Terminating.as_str()),
        );
    }

    fn blocks_deletion(&self, object: &Value) -> bool {
        !list(object, "spec.finalizers").is_empty()
    }

    fn validate_status_update(&self, new: &Value, old: &Value) -> Errors {
        let mut errors = Errors::new();
        rollout_policy::validate_namespace(&mut errors, new, Some(old));
        let (phase, words) = if has(new, "metadata.deletionTimestamp") {
            (
                NamespacePhase::Terminating.as_str(),
                "may only be 'Terminating' if `deletionTimestamp` is not empty",
            )
        } else {
            (
                NamespacePhase::Active.as_str(),
                "may only be 'Active' if `deletionTimestamp` is empty",
            )
        };
        let shown = text(new, "status.phase");
        if shown != phase {
            errors.invalid(&Path::new("status").child("Phase"), shown, words);
        }
        errors
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check, check_create, created, updated};
    use super::*;

    #[test]
    fn a_new_namespace_is_active_and_has_its_finalizer_and_label() {
        let object = json!({"metadata": {"name": "a", "labels": {"x": "y", NAME_LABEL: "b"}},
            "status": {"phase": "Terminating"}});
        assert_eq!(
            created(&Namespace, &object),
            json!({"metadata": {"name": "a", "labels": {"x": "y", NAME_LABEL: "a"}},
                "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}})
        );
    }

    #[test]
    fn finalizers_of_the_spec_say_whose_they_are() {
        check_create(
            &Namespace,
            &json!({"metadata": {"name": "a"}, "spec": {"finalizers": ["mine"]}}),
            &[
                "spec.finalizers: Invalid value: \"mine\": name is neither a standard finalizer \
                 name nor is it fully qualified",
            ],
        );
        check(
            &Namespace.validate_subresource_update(
                &json!({"spec": {"finalizers": ["a.b/c", "mine"]}}),
                &Value::Null,
            ),
            &[
                "spec.finalizers[1]: Invalid value: \"mine\": name is neither a standard \
                 finalizer name nor is it fully qualified",
            ],
        );
    }

    #[test]
    fn an_update_keeps_finalizers_and_status() {
        let old = created(&Namespace, &json!({"metadata": {"name": "a"}}));
        let new = json!({"metadata": {"name": "a"}, "spec": {}, "status": {"phase": "x"}});
        let new = updated(&Namespace, &new, &old);
        assert_eq!(new, old);
    }

    #[test]
    fn the_phase_follows_the_deletion() {
        let status = |meta: Value, phase: &str| {
            let new = json!({"metadata": meta, "status": {"phase": phase}});
            Namespace.validate_status_update(&new, &json!({}))
        };
        check(&status(json!({}), "Active"), &[]);
        check(
            &status(json!({}), "Terminating"),
            &[
                "status.Phase: Invalid value: \"Terminating\": may only be 'Active' if \
               `deletionTimestamp` is empty",
            ],
        );
        check(
            &status(json!({"deletionTimestamp": "t"}), "Active"),
            &[
                "status.Phase: Invalid value: \"Active\": may only be 'Terminating' if \
               `deletionTimestamp` is not empty",
            ],
        );
    }

    #[test]
    fn finalizers_of_the_spec_block_deletion() {
        let mut object = created(&Namespace, &json!({"metadata": {"name": "a"}}));
        Namespace.begin_deletion(&mut object);
        assert_eq!(object["status"]["phase"], "Terminating");
        assert!(Namespace.blocks_deletion(&object));
        object["spec"]["finalizers"] = json!([]);
        assert!(!Namespace.blocks_deletion(&object));
    }
}
