//! Patch: the three patch formats, applied to the current version until the write succeeds.

use serde_json::Value;

use super::call::Call;
use super::managed_fields::Author;
use super::update::{Change, Edit, check_name, expected_version, modify, reply};
use super::{At, apply, decode};
use crate::api::Api;
use crate::field::{FieldError, Path};
use crate::object::{Document, ManagedFields};
use crate::patch::{PatchError, json, merge, strategic};
use crate::registry::Part;
use crate::request::path::Place;
use crate::request::query::invalid_option;
use crate::response::Reply;
use crate::schema;
use crate::status::{ApiError, Result};
use crate::tree::text;

/// The media types of patches, in upstream's order.
const ACCEPTED: &[&str] = &[JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, apply::MEDIA_TYPE];

const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";

pub(super) async fn patch(api: &Api, call: &Call, place: &Place) -> Result<Reply> {
    patch_part(api, call, place, Part::Main).await
}

/// PATCH of an object or of one part of it.
pub(super) async fn patch_part(api: &Api, call: &Call, place: &Place, part: Part) -> Result<Reply> {
    if call.media_type() == apply::MEDIA_TYPE {
        return apply::apply(api, call, place, part).await;
    }
    let at = At::of(place)?;
    let (format, duplicates) = Format::of(call)?;
    let dry_run = call.query.dry_run("PatchOptions")?;
    let mode = call.query.field_validation("PatchOptions")?;
    call.query.check_field_manager("PatchOptions")?;
    refuse_force(call)?;
    call.form()?;
    let manager = call.manager();
    let names_managers = names_managers(&call.body);
    let change = Change {
        at,
        by: Author {
            user: &call.user,
            manager: &manager,
        },
        part,
        dry_run,
    };
    let changed = modify(api, change, |old| {
        let mut tree = if names_managers {
            old.clone().into_shown(at.row, ManagedFields::Shown)
        } else {
            old.tree.clone()
        };
        format.apply(&at, &mut tree)?;
        let refuse = |why: String| invalid_result(&call.body, &why);
        if !tree.is_object() {
            return Err(refuse("the patch does not leave an object".to_owned()));
        }
        let warnings = decode::conform(at.row, &mut tree, duplicates.clone(), mode, refuse)?;
        check_identity(&at, &tree, &old.tree)?;
        let expected = conditional_version(&tree, &old.tree)?;
        Ok(Edit {
            expected,
            warnings,
            ..Edit::of(Document::new(tree))
        })
    })
    .await?;
    reply(call, at.row, 200, changed)
}

/// Whether a patch may be about `metadata.managedFields`, which are not in the tree otherwise.
fn names_managers(patch: &[u8]) -> bool {
    const NAME: &[u8] = b"managedFields";
    patch.windows(NAME.len()).any(|window| window == NAME)
}

/// The refusal of a patch whose result is not a valid object.
fn invalid_result(patch: &[u8], why: &str) -> ApiError {
    let shown = Value::from(String::from_utf8_lossy(patch));
    let error = FieldError::invalid(&Path::new("patch"), &shown, why);
    ApiError::invalid_kind("", "", "", &[error])
}

/// `force` belongs to server-side apply.
fn refuse_force(call: &Call) -> Result<()> {
    if call.query.get("force").is_none() {
        return Ok(());
    }
    let words = "may not be specified for non-apply patch";
    let error = FieldError::forbidden(&Path::new("force"), words);
    Err(invalid_option("PatchOptions", error))
}

/// A parsed patch.
enum Format {
    Json(bytes::Bytes),
    Merge(Value),
    Strategic(Value),
}

impl Format {
    /// The patch, and its duplicate members. (A JSON patch has no members of the object.)
    fn of(call: &Call) -> Result<(Self, Vec<String>)> {
        let parse = |format: fn(Value) -> Self| {
            let undecodable =
                |why: String| ApiError::bad_request(format!("error decoding patch: {why}"));
            let parsed = schema::decode::parse(&call.body)
                .map_err(|error| undecodable(error.to_string()))?;
            if parsed.value.is_object() {
                return Ok((format(parsed.value), parsed.duplicates));
            }
            let json = schema::go::json_type(&parsed.value);
            Err(undecodable(format!(
                "json: cannot unmarshal {json} into Go value of type map[string]interface {{}}"
            )))
        };
        match call.media_type() {
            JSON_PATCH => Ok((Self::Json(call.body.clone()), Vec::new())),
            MERGE_PATCH => parse(Self::Merge),
            STRATEGIC_PATCH => parse(Self::Strategic),
            _ => Err(ApiError::unsupported_media_type(ACCEPTED)),
        }
    }

    fn apply(&self, at: &At<'_>, tree: &mut Value) -> Result<()> {
        let done = match self {
            Self::Json(patch) => json::apply(tree, patch),
            Self::Merge(patch) => merge::apply(tree, patch.clone()),
            Self::Strategic(patch) => {
                strategic::apply(decode::type_of(at.row)?, tree, patch.clone())
            }
        };
        done.map_err(|error| match error {
            PatchError::Rejected(_) if matches!(self, Self::Json(_)) => {
                ApiError::json_patch_rejected()
            }
            PatchError::Malformed(why) => ApiError::bad_request(why),
            PatchError::Rejected(why) => ApiError::unprocessable(why),
            PatchError::TooLarge(why) => ApiError::too_large_because(why),
        })
    }
}

/// Refuses a patch that changes the name, kind or apiVersion. (Validation of metadata refuses another uid.)
pub(super) fn check_identity(at: &At<'_>, new: &Value, old: &Value) -> Result<()> {
    check_name(at, new)?;
    for field in ["kind", "apiVersion"] {
        if new[field] != old[field] {
            let message = format!("a patch may not change {field}");
            return Err(ApiError::bad_request(message));
        }
    }
    Ok(())
}

/// A patch that sets another resourceVersion is conditional on it.
pub(super) fn conditional_version(new: &Value, old: &Value) -> Result<Option<u64>> {
    if text(new, "metadata.resourceVersion") == text(old, "metadata.resourceVersion") {
        return Ok(None);
    }
    expected_version(new)
}
