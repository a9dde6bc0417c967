//! Validates rollout policies: annotations of DaemonSets and Namespaces below `rollout.kennel.dev/`
//! (`docs/spec/rollouts.md`, R1.2). Commands on DaemonSets are never refused: the controller ignores one that it cannot
//! carry out. On Namespaces they are, for there they would concern every DaemonSet.

use std::collections::BTreeMap;

use kennel_core::daemonset::required;
use kennel_core::rollout::PREFIX;
use kennel_core::rollout::policy::{self, PolicyError};
use serde_json::Value;

use super::meta;
use crate::field::{ErrorList as _, Errors, Path};
use crate::tree::text_entries;

const ANNOTATIONS: &str = "metadata.annotations";

/// Adds an error for each unknown key and each unreadable value. On an update, an annotation that `old` has with the
/// same value is left alone, so that an invalid object can still be changed, deleted, and have its status written.
pub(super) fn validate(errors: &mut Errors, object: &Value, old: Option<&Value>) {
    validate_by(policy::errors, errors, object, old);
}

/// The same for a Namespace, where commands are errors, too.
pub(super) fn validate_namespace(errors: &mut Errors, object: &Value, old: Option<&Value>) {
    validate_by(policy::namespace_errors, errors, object, old);
}

fn validate_by(
    rules: fn(&BTreeMap<String, String>) -> Vec<PolicyError>,
    errors: &mut Errors,
    object: &Value,
    old: Option<&Value>,
) {
    let ours = text_entries(object, ANNOTATIONS).filter(|(key, _)| key.starts_with(PREFIX));
    let own = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
    let annotations: BTreeMap<String, String> = ours.map(own).collect();
    if annotations.is_empty() {
        return;
    }
    let path = Path::new("metadata").child("annotations");
    for error in rules(&annotations) {
        let key = format!("{PREFIX}{}", error.key);
        let before = old.and_then(|old| meta::entry(old, ANNOTATIONS, &key));
        if before != Some(error.value.as_str()) {
            errors.invalid(&path.key(&key), &error.value, &error.allowed);
        }
    }
}

/// The same for the annotation of DaemonSets that nodes wait for (R12).
pub(super) fn validate_required(errors: &mut Errors, object: &Value, old: Option<&Value>) {
    let value = |object| meta::entry(object, ANNOTATIONS, required::ANNOTATION);
    let Some(found) = value(object).filter(|found| !required::is_allowed(found)) else {
        return;
    };
    if old.and_then(value) != Some(found) {
        let path = Path::new("metadata").child("annotations");
        errors.invalid(&path.key(required::ANNOTATION), found, required::ALLOWED);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::testing::check;

    fn object(annotations: &Value) -> Value {
        json!({"metadata": {"name": "a", "annotations": annotations}})
    }

    #[track_caller]
    fn refused(new: &Value, old: Option<&Value>, expected: &[&str]) {
        let mut errors = Errors::new();
        let old = old.map(object);
        validate(&mut errors, &object(new), old.as_ref());
        check(&errors, expected);
    }

    #[test]
    fn r1_2_every_bad_annotation_has_an_error_of_its_own() {
        refused(&json!({}), None, &[]);
        refused(
            &json!({
                "example.com/stages": "x",
                "rollout.kennel.dev/max-failures": "few",
                "rollout.kennel.dev/on-failure": "rollback",
                "rollout.kennel.dev/pin-config": "yes",
                "rollout.kennel.devil/x": "y",
            }),
            None,
            &[
                "metadata.annotations[rollout.kennel.dev/max-failures]: Invalid value: \"few\": must be a \
                 count such as 3, or a percentage from 0% to 100%",
                "metadata.annotations[rollout.kennel.dev/pin-config]: Invalid value: \"yes\": must be \"true\" \
                 or \"false\"",
            ],
        );
    }

    #[test]
    fn r12_whether_a_daemon_set_is_required_is_true_or_false() {
        let check_with = |value: &str, old: Option<&str>, expected: &[&str]| {
            let with = |value: &str| object(&json!({"kennel.dev/required": value}));
            let mut errors = Errors::new();
            validate_required(&mut errors, &with(value), old.map(with).as_ref());
            check(&errors, expected);
        };
        check_with("true", None, &[]);
        check_with("false", None, &[]);
        let refused = "metadata.annotations[kennel.dev/required]: Invalid value: \"yes\": must be \"true\" \
                       or \"false\"";
        check_with("yes", None, &[refused]);
        check_with("yes", Some("true"), &[refused]);
        check_with("yes", Some("yes"), &[]);
    }

    #[test]
    fn r1_2_a_bad_annotation_that_is_there_already_may_stay() {
        let bad = json!({"rollout.kennel.dev/max-restarts": "many"});
        refused(&bad, Some(&bad), &[]);
        let worse = json!({"rollout.kennel.dev/max-restarts": "more"});
        refused(
            &worse,
            Some(&bad),
            &[
                "metadata.annotations[rollout.kennel.dev/max-restarts]: Invalid value: \"more\": must be a \
                 count such as 0 or 5",
            ],
        );
    }

    #[test]
    fn r6_commands_are_refused_on_namespaces() {
        let refused = |new: &Value, old: Option<&Value>, expected: &[&str]| {
            let mut errors = Errors::new();
            let old = old.map(object);
            validate_namespace(&mut errors, &object(new), old.as_ref());
            check(&errors, expected);
        };
        let pause = json!({"rollout.kennel.dev/pause": "night"});
        refused(
            &pause,
            None,
            &[
                "metadata.annotations[rollout.kennel.dev/pause]: Invalid value: \"night\": a command belongs \
                 on the DaemonSet, not on its Namespace",
            ],
        );
        refused(&pause, Some(&pause), &[]);
        refused(&json!({"rollout.kennel.dev/stages": "1, 100%"}), None, &[]);
    }

    #[test]
    fn r6_1_commands_are_never_refused() {
        refused(
            &json!({
                "rollout.kennel.dev/abort": "",
                "rollout.kennel.dev/freeze": "fire",
                "rollout.kennel.dev/pause": "night",
                "rollout.kennel.dev/promote": "what?",
                "rollout.kennel.dev/retry": "no/number",
            }),
            None,
            &[],
        );
    }
}
