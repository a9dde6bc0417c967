//! The strategy of Event: one storage, two views.
//!
//! Events are stored in the core/v1 form. The events.k8s.io/v1 form has the same content under
//! other names; [`to_core`] and [`from_core`] move between the two. The strategies take either
//! form, and report fields by their core names, as upstream does.

use serde_json::{Value, json};

use super::Strategy;
use super::meta::{immutable, immutable_at};
use crate::field::{ErrorList as _, Errors, FieldError, Path};
use crate::names;
use crate::registry::Part;
use crate::tree::{at, has, number, same, set, text};

/// The `apiVersion` of the stored form.
const CORE_VERSION: &str = "v1";
/// The `apiVersion` of the other form.
const EVENTS_VERSION: &str = "events.k8s.io/v1";

/// Core names beside their events.k8s.io names.
const RENAMED: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

const NAME_LENGTH_MAX: usize = 128;
const MESSAGE_LENGTH_MAX: usize = 1024;

#[derive(Debug)]
pub struct CoreEvent;

impl Strategy for CoreEvent {
    fn adds_fields(&self, _: Part) -> bool {
        false
    }

    fn validate_create(&self, object: &Value) -> Errors {
        lenient_errors(&core_form(object), "reportingComponent")
    }

    fn validate_update(&self, new: &Value, _old: &Value) -> Errors {
        self.validate_create(new)
    }
}

#[derive(Debug)]
pub struct Event;

impl Strategy for Event {
    fn validate_create(&self, object: &Value) -> Errors {
        let event = core_form(object);
        let mut errors = lenient_errors(&event, "reportingController");
        check_series(&mut errors, &event);
        if !has(&event, "eventTime") {
            errors.required(&Path::new("eventTime"), "");
        }
        let kind = text(&event, "type");
        if !matches!(kind, "Normal" | "Warning") {
            let words = format!("has invalid value: {kind}");
            errors.invalid(&Path::new("type"), "", &words);
        }
        for field in ["firstTimestamp", "lastTimestamp", "count", "source"] {
            if is_given(&event, field) {
                errors.invalid(&Path::new(field), "", "needs to be unset");
            }
        }
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Errors {
        let (new, old) = (core_form(new), core_form(old));
        let mut errors = lenient_errors(&new, "reportingController");
        if !same(at(&new, "series"), at(&old, "series")) {
            check_series(&mut errors, &new);
        }
        for field in [
            "involvedObject",
            "reason",
            "message",
            "source",
            "firstTimestamp",
            "lastTimestamp",
            "count",
            "type",
            "eventTime",
            "action",
            "related",
        ] {
            immutable(&mut errors, &new, &old, field);
        }
        let path = Path::new("reportingController");
        errors.extend(immutable_at(&new, &old, "reportingComponent", &path));
        immutable(&mut errors, &new, &old, "reportingInstance");
        errors
    }
}

/// Converts an events.k8s.io/v1 event to core/v1, the stored form.
pub fn to_core(event: &mut Value) {
    rename(event, CORE_VERSION, |(core, other)| (other, core));
}

/// Converts a stored event to events.k8s.io/v1.
pub fn from_core(event: &mut Value) {
    rename(event, EVENTS_VERSION, |(core, other)| (core, other));
}

fn rename(
    event: &mut Value,
    version: &str,
    direction: fn((&'static str, &'static str)) -> (&'static str, &'static str),
) {
    let Some(fields) = event.as_object_mut() else {
        return;
    };
    for pair in RENAMED {
        let (from, to) = direction(pair);
        if let Some(value) = fields.remove(from) {
            fields.insert(to.to_owned(), value);
        }
    }
    set(event, "apiVersion", json!(version));
}

fn core_form(event: &Value) -> Value {
    let mut event = event.clone();
    to_core(&mut event);
    event
}

/// Whether a field is not zero.
fn is_given(event: &Value, field: &str) -> bool {
    let value = at(event, field);
    match field {
        "count" => number(event, field) != 0,
        "source" => !text(value, "component").is_empty() || !text(value, "host").is_empty(),
        _ => !value.is_null(),
    }
}

fn check_series(errors: &mut Errors, event: &Value) {
    if !has(event, "series") {
        return;
    }
    if number(event, "series.count") < 2 {
        errors.invalid(&Path::new("series.count"), "", "should be at least 2");
    }
    if !has(event, "series.lastObservedTime") {
        errors.required(&Path::new("series.lastObservedTime"), "");
    }
}

/// The rules of both forms.
fn lenient_errors(event: &Value, reporter: &'static str) -> Errors {
    let mut errors = Errors::new();
    let namespace = text(event, "metadata.namespace");
    let about = text(event, "involvedObject.namespace");
    let new_style = has(event, "eventTime");
    let fits = match (new_style, about) {
        (false, "") => matches!(namespace, "" | "default"),
        (false, about) => namespace == about,
        (true, "") => matches!(namespace, "default" | "kube-system"),
        (true, _) => true,
    };
    if !fits {
        let path = Path::new("involvedObject.namespace");
        errors.invalid(&path, about, "does not match event.namespace");
    }
    if new_style {
        check_new_style(&mut errors, event, reporter);
    }
    let wrong = names::dns1123_subdomain(namespace);
    errors.invalid_each(&Path::new("namespace"), namespace, wrong);
    errors
}

/// An event with an `eventTime` must say who reports what.
fn check_new_style(errors: &mut Errors, event: &Value, reporter: &'static str) {
    let by = text(event, "reportingComponent");
    let path = Path::new(reporter);
    if by.is_empty() {
        errors.required(&path, "");
    }
    errors.invalid_each(&path, by, names::qualified_name(by));
    let too_long = |field: &'static str, max: usize| {
        let words = format!("can have at most {max} characters");
        (text(event, field).len() > max).then(|| FieldError::invalid(&Path::new(field), "", &words))
    };
    for field in ["reportingInstance", "action", "reason"] {
        if text(event, field).is_empty() {
            errors.required(&Path::new(field), "");
        }
        errors.extend(too_long(field, NAME_LENGTH_MAX));
    }
    errors.extend(too_long("message", MESSAGE_LENGTH_MAX));
}

#[cfg(test)]
mod tests;
