//! Defaults and validation of `updateStrategy`.

use serde_json::{Map, Value, json};

use crate::field::{ErrorList as _, Errors, FieldError, Path};
use crate::kinds::check::NOT_NEGATIVE;
use crate::kinds::pod::defaults::{fields, fill, fill_text};
use crate::names;
use crate::tree::text;

const REVISIONS_KEPT: i64 = 10;

/// Defaults the strategy and the revision history limit. Only a rolling update has members.
pub(super) fn default(spec: &mut Map<String, Value>) {
    fill(spec, "revisionHistoryLimit", || json!(REVISIONS_KEPT));
    fill(spec, "updateStrategy", || json!({}));
    let Some(strategy) = fields(spec, "updateStrategy") else {
        return;
    };
    fill_text(strategy, "type", "RollingUpdate");
    if strategy["type"] != "RollingUpdate" {
        return;
    }
    fill(strategy, "rollingUpdate", || json!({}));
    if let Some(rolling) = fields(strategy, "rollingUpdate") {
        fill(rolling, "maxUnavailable", || json!(1));
        fill(rolling, "maxSurge", || json!(0));
    }
}

/// Checks the strategy.
pub(super) fn validate(errors: &mut Errors, spec: &Value, at: &Path) {
    let nothing = Value::Null;
    let strategy = spec.get("updateStrategy").unwrap_or(&nothing);
    let at = at.child("updateStrategy");
    match text(strategy, "type") {
        "OnDelete" => {}
        "RollingUpdate" => match strategy.get("rollingUpdate") {
            Some(rolling) => rolling_update(errors, rolling, &at.child("rollingUpdate")),
            None => errors.required(&at.child("rollingUpdate"), ""),
        },
        other => {
            let shown = spelled(other, strategy.get("rollingUpdate"));
            let supported = ["RollingUpdate", "OnDelete"];
            errors.push(FieldError::not_supported_shown(&at, shown, &supported));
        }
    }
}

/// A strategy as upstream prints it in errors.
fn spelled(kind: &str, rolling: Option<&Value>) -> String {
    let member =
        |rolling: &Value, name: &str| rolling.get(name).map_or("0".to_owned(), Value::to_string);
    let rolling = rolling.map_or("null".to_owned(), |rolling| {
        format!(
            "{{\"MaxUnavailable\":{},\"MaxSurge\":{}}}",
            member(rolling, "maxUnavailable"),
            member(rolling, "maxSurge")
        )
    });
    format!(
        "{{\"Type\":{},\"RollingUpdate\":{rolling}}}",
        Value::from(kind)
    )
}

fn rolling_update(errors: &mut Errors, rolling: &Value, at: &Path) {
    let zero = json!(0);
    let unavailable = rolling.get("maxUnavailable").unwrap_or(&zero);
    let surge = rolling.get("maxSurge").unwrap_or(&zero);
    let members = [("maxUnavailable", unavailable), ("maxSurge", surge)];
    for (name, value) in members {
        count_or_percent(errors, value, &at.child(name));
    }
    for (name, value) in members {
        at_most_all(errors, value, &at.child(name));
    }
    match (is_some(unavailable), is_some(surge)) {
        (true, true) => {
            let why = "may not be set when maxUnavailable is non-zero";
            errors.invalid(&at.child("maxSurge"), surge, why);
        }
        (false, false) => {
            let why = "cannot be 0 when maxSurge is 0";
            errors.required(&at.child("maxUnavailable"), why);
        }
        _ => {}
    }
}

/// Reports what is neither a count nor a percentage.
pub(in crate::kinds) fn count_or_percent(errors: &mut Errors, value: &Value, at: &Path) {
    if let Some(text) = value.as_str() {
        errors.invalid_each(at, value, names::percent(text));
    } else if value.as_i64().is_some_and(|count| count < 0) {
        errors.invalid(at, value, NOT_NEGATIVE);
    }
}

/// Reports more than 100 %.
pub(in crate::kinds) fn at_most_all(errors: &mut Errors, value: &Value, at: &Path) {
    if percent(value).is_some_and(|percent| percent > 100) {
        errors.invalid(at, value, "must not be greater than 100%");
    }
}

/// The number of a well-formed percentage; saturates.
fn percent(value: &Value) -> Option<i64> {
    let text = value.as_str()?;
    if !names::percent(text).is_empty() {
        return None;
    }
    Some(text.trim_end_matches('%').parse().unwrap_or(i64::MAX))
}

/// Whether a member is neither 0 nor 0 %.
fn is_some(value: &Value) -> bool {
    let amount = percent(value)
        .or_else(|| value.as_i64())
        .or_else(|| value.as_str()?.parse().ok());
    amount.unwrap_or(0) != 0
}
