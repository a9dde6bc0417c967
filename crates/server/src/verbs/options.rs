//! `DeleteOptions`, from the body or else from the query.

use serde_json::Value;

use super::call::Call;
use super::decode;
use crate::field::{FieldError, Path};
use crate::request::query::{check_dry_run, invalid_option};
use crate::status::{ApiError, Result};
use crate::tree::{opt_text, texts};

/// What happens to the dependents of a deleted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Propagation {
    /// They stay, without their owner.
    Orphan,
    /// The garbage collector deletes them afterwards.
    Background,
    /// The garbage collector deletes them first.
    Foreground,
}

#[derive(Clone, Debug, Default)]
pub(super) struct DeleteOptions {
    pub(super) grace_seconds: Option<i64>,
    pub(super) propagation: Option<Propagation>,
    pub(super) uid: Option<String>,
    pub(super) resource_version: Option<String>,
    pub(super) dry_run: bool,
}

impl DeleteOptions {
    pub(super) fn of(call: &Call) -> Result<Self> {
        if call.body.is_empty() {
            return Self::from_query(call);
        }
        let options = decode::as_sent(call, "meta.v1.DeleteOptions", "DeleteOptions")?;
        if !options.is_object() {
            return Err(ApiError::bad_request("DeleteOptions must be an object"));
        }
        // Clients send any group version, or no kind and apiVersion.
        let kind = options["kind"].as_str().unwrap_or("DeleteOptions");
        if kind != "DeleteOptions" {
            let message = format!("the body of a DELETE must be DeleteOptions, not {kind}");
            return Err(ApiError::bad_request(message));
        }
        Self::from_value(&options)
    }

    pub(super) fn from_value(value: &Value) -> Result<Self> {
        let dry_run: Vec<&str> = texts(value, "dryRun").collect();
        let text = |path| opt_text(value, path).map(str::to_owned);
        Ok(Self {
            grace_seconds: grace(&value["gracePeriodSeconds"])?,
            propagation: propagation(
                value["propagationPolicy"].as_str(),
                value["orphanDependents"].as_bool(),
            )?,
            uid: text("preconditions.uid"),
            resource_version: text("preconditions.resourceVersion"),
            dry_run: check_dry_run(&dry_run, "DeleteOptions")?,
        })
    }

    fn from_query(call: &Call) -> Result<Self> {
        let query = &call.query;
        let orphan = match query.get("orphanDependents") {
            None => None,
            Some(_) => Some(query.flag("orphanDependents")?),
        };
        Ok(Self {
            grace_seconds: query.integer("gracePeriodSeconds")?,
            propagation: propagation(query.get("propagationPolicy"), orphan)?,
            dry_run: query.dry_run("DeleteOptions")?,
            ..Self::default()
        })
    }
}

fn grace(value: &Value) -> Result<Option<i64>> {
    match value {
        Value::Null => Ok(None),
        value => value.as_i64().map(Some).ok_or_else(|| {
            ApiError::bad_request(format!(
                "json: cannot unmarshal {value} into Go struct field DeleteOptions.gracePeriodSeconds of type int64"
            ))
        }),
    }
}

fn propagation(policy: Option<&str>, orphan: Option<bool>) -> Result<Option<Propagation>> {
    let path = Path::new("propagationPolicy");
    match (policy, orphan) {
        (Some(policy), Some(_)) => Err(invalid_option(
            "DeleteOptions",
            FieldError::invalid(
                &path,
                policy,
                "orphanDependents and deletionPropagation cannot be both set",
            ),
        )),
        (None, Some(true)) => Ok(Some(Propagation::Orphan)),
        (None, Some(false)) => Ok(Some(Propagation::Background)),
        (None, None) => Ok(None),
        (Some("Orphan"), None) => Ok(Some(Propagation::Orphan)),
        (Some("Background"), None) => Ok(Some(Propagation::Background)),
        (Some("Foreground"), None) => Ok(Some(Propagation::Foreground)),
        (Some(other), None) => Err(invalid_option(
            "DeleteOptions",
            FieldError::not_supported(&path, other, &["Foreground", "Background", "Orphan", "nil"]),
        )),
    }
}
