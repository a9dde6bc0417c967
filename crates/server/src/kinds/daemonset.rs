//! The strategy of DaemonSet.
//!
//! The server owns the template generation, an annotation that users can neither change nor remove.

mod prepare;
pub(in crate::kinds) mod strategy;

#[cfg(test)]
mod tests;

use serde_json::Value;

use super::check::{forbid, not_negative};
use super::pod::{defaults, template, warnings};
use super::{Strategy, rollout_policy, selector};
use crate::field::{ErrorList as _, Errors, Path};
use crate::schema::semantic_eq;
use crate::tree;
use crate::tree::{flag, int, list, number, text};

#[derive(Debug)]
pub struct DaemonSet;

impl Strategy for DaemonSet {
    fn default(&self, object: &mut Value) {
        prepare::default_template_generation(object);
        if !tree::has(object, "spec") {
            tree::set(object, "spec", serde_json::json!({}));
        }
        if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
            strategy::default(spec);
            defaults::fill(spec, "template", || serde_json::json!({}));
            if let Some(template) = defaults::fields(spec, "template") {
                defaults::template(template);
            }
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        prepare::create(object);
    }

    fn prepare_update(&self, new: &mut Value, old: &Value) {
        prepare::update(new, old);
    }

    fn prepare_status_update(&self, new: &mut Value, old: &Value) {
        prepare::status(new, old);
    }

    fn validate_create(&self, object: &Value) -> Errors {
        let mut errors = Errors::new();
        prepare::validate_template_generation(&mut errors, object);
        rollout_policy::validate(&mut errors, object, None);
        rollout_policy::validate_required(&mut errors, object, None);
        spec(&mut errors, object, None);
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Errors {
        let mut errors = Errors::new();
        let at = Path::new("spec").child("selector");
        let (wanted, before) = (
            tree::at(new, "spec.selector"),
            tree::at(old, "spec.selector"),
        );
        if !semantic_eq(wanted, before) {
            errors.invalid(&at, wanted, "field is immutable");
        }
        rollout_policy::validate(&mut errors, new, Some(old));
        rollout_policy::validate_required(&mut errors, new, Some(old));
        spec(&mut errors, new, Some(old));
        errors
    }

    fn validate_status_update(&self, new: &Value, old: &Value) -> Errors {
        status(new, old)
    }

    fn warnings(&self, object: &Value, old: Option<&Value>) -> Vec<String> {
        let unchanged = old.is_some_and(|old| {
            prepare::template_generation(old) == prepare::template_generation(object)
        });
        if unchanged {
            return Vec::new();
        }
        let at = Path::new("spec").child("template");
        warnings::of(tree::at(object, "spec.template"), &at, true)
    }
}

fn spec(errors: &mut Errors, object: &Value, old: Option<&Value>) {
    let nothing = Value::Null;
    let spec = object.get("spec").unwrap_or(&nothing);
    let old = old.and_then(|old| old.get("spec"));
    let at = Path::new("spec");
    let template = spec.get("template").unwrap_or(&nothing);
    selected(errors, spec, old, &at);
    let template_at = at.child("template");
    let old_template = old.and_then(|old| old.get("template"));
    template::validate(errors, template, old_template, &template_at);
    let pod = template.get("spec").unwrap_or(&nothing);
    let pod_at = template_at.child("spec");
    read_only_disks(errors, pod, old_template, &pod_at);
    let policy = text(pod, "restartPolicy");
    if policy != "Always" {
        errors.not_supported(&pod_at.child("restartPolicy"), policy, &["Always"]);
    }
    if pod.get("activeDeadlineSeconds").is_some() {
        let why = "activeDeadlineSeconds in DaemonSet is not Supported";
        forbid(errors, &pod_at, "activeDeadlineSeconds", why);
    }
    not_negative(
        errors,
        &at,
        "minReadySeconds",
        number(spec, "minReadySeconds"),
    );
    strategy::validate(errors, spec, &at);
    let limit = number(spec, "revisionHistoryLimit");
    not_negative(errors, &at, "revisionHistoryLimit", limit);
}

/// The selector must be valid, and must match the labels of the template.
fn selected(errors: &mut Errors, spec: &Value, old: Option<&Value>, at: &Path) {
    let wanted = spec.get("selector");
    let at_selector = at.child("selector");
    let mut well_formed = true;
    if let Some(wanted) = wanted {
        let strict = selector::validate(wanted, &at_selector, false);
        well_formed = strict.is_empty();
        let was_bad = old.and_then(|old| old.get("selector")).is_some_and(|old| {
            !selector::validate(old, &at_selector, false).is_empty()
                && selector::validate(old, &at_selector, true).is_empty()
        });
        errors.extend(if was_bad {
            selector::validate(wanted, &at_selector, true)
        } else {
            strict
        });
    }
    let labels = tree::at(spec, "template.metadata.labels");
    if well_formed && !selector::matches(wanted, Some(labels)) {
        let at = at.child("template").child("metadata").child("labels");
        errors.invalid(&at, labels, "`selector` does not match template `labels`");
    }
    if let Some(wanted) = wanted
        && selector::is_empty(wanted)
    {
        let why = "empty selector is invalid for daemonset";
        errors.invalid(&at_selector, wanted, why);
    }
}

/// A disk that many nodes mount must be read-only.
fn read_only_disks(errors: &mut Errors, pod: &Value, old: Option<&Value>, at: &Path) {
    let writable = |volume: &Value| {
        let disk = volume.get("gcePersistentDisk");
        disk.is_some_and(|disk| !flag(disk, "readOnly"))
    };
    let before = old.map(|old| tree::list(old, "spec.volumes"));
    if before.is_some_and(|volumes| volumes.iter().any(writable)) {
        return;
    }
    for (i, volume) in list(pod, "volumes").iter().enumerate() {
        if writable(volume) {
            let at = at.child("volumes").index(i).child("gcePersistentDisk");
            let why = "must be true for replicated pods > 1; GCE PD can only be mounted on multiple machines if it is read-only";
            errors.invalid(&at.child("readOnly"), false, why);
        }
    }
}

const COUNTERS: [&str; 9] = [
    "currentNumberScheduled",
    "numberMisscheduled",
    "desiredNumberScheduled",
    "numberReady",
    "observedGeneration",
    "updatedNumberScheduled",
    "numberAvailable",
    "numberUnavailable",
    "collisionCount",
];

fn status(new: &Value, old: &Value) -> Errors {
    let mut errors = Errors::new();
    // A status write may change annotations, too.
    rollout_policy::validate(&mut errors, new, Some(old));
    let nothing = Value::Null;
    let at = Path::new("status");
    let status = new.get("status").unwrap_or(&nothing);
    for counter in COUNTERS {
        not_negative(&mut errors, &at, counter, number(status, counter));
    }
    let before = int(old, "status.collisionCount");
    let after = int(status, "collisionCount");
    if before.is_some_and(|before| after.is_none_or(|after| after < before)) {
        let why = "cannot be decremented";
        errors.invalid(&at.child("collisionCount"), after.unwrap_or(0), why);
    }
    errors
}
