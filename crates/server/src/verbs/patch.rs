//! Patch: the three patch formats, applied to the newest version until the write succeeds.

use serde_json::Value;

use super::call::{Call, Reply};
use super::update::{Change, Edit, Part, check_uid, expected_version, modify, reply};
use super::{At, decode, meta};
use crate::api::Api;
use crate::object::Document;
use crate::patch::{PatchError, json, merge, strategic};
use crate::request::path::Place;
use crate::schema;
use crate::status::{ApiError, Result};

const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";

pub(super) async fn patch(api: &Api, call: &Call, place: &Place) -> Result<Reply> {
    patch_part(api, call, place, Part::Main).await
}

/// PATCH of an object or of one part of it.
pub(super) async fn patch_part(api: &Api, call: &Call, place: &Place, part: Part) -> Result<Reply> {
    let at = At::of(place)?;
    let dry_run = call.query.dry_run("PatchOptions")?;
    let mode = call.query.field_validation("PatchOptions")?;
    let format = Format::of(call)?;
    let change = Change {
        at,
        user: &call.user,
        part,
        dry_run,
    };
    let changed = modify(api, change, |old| {
        let mut tree = old.tree.clone();
        format.apply(&at, &mut tree)?;
        if !tree.is_object() {
            return Err(ApiError::bad_request("the patch does not leave an object"));
        }
        let warnings = decode::conform(at.row, &mut tree, Vec::new(), mode)?;
        check_identity(&at, &tree, &old.tree)?;
        let expected = conditional_version(&tree, &old.tree)?;
        Ok(Edit {
            document: Document::new(tree),
            expected,
            warnings,
        })
    })
    .await?;
    reply(call, at, changed)
}

/// A parsed patch.
enum Format {
    Json(bytes::Bytes),
    Merge(Value),
    Strategic(Value),
}

impl Format {
    fn of(call: &Call) -> Result<Self> {
        let parse = || {
            let parsed = schema::decode::parse(&call.body).map_err(ApiError::bad_request)?;
            if parsed.value.is_object() {
                return Ok(parsed.value);
            }
            Err(ApiError::bad_request("the patch is not a JSON object"))
        };
        match call.media_type() {
            JSON_PATCH => Ok(Self::Json(call.body.clone())),
            MERGE_PATCH => Ok(Self::Merge(parse()?)),
            STRATEGIC_PATCH => Ok(Self::Strategic(parse()?)),
            _ => Err(ApiError::unsupported_media_type(&[
                JSON_PATCH,
                MERGE_PATCH,
                STRATEGIC_PATCH,
            ])),
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
            PatchError::Malformed(why) => ApiError::bad_request(why),
            PatchError::Rejected(why) => ApiError::unprocessable(why),
            PatchError::TooLarge(why) => ApiError::too_large_because(why),
        })
    }
}

/// A patch may say which object it means, but not turn it into another one.
fn check_identity(at: &At<'_>, new: &Value, old: &Value) -> Result<()> {
    check_uid(at, new, old)?;
    for field in ["name", "namespace"] {
        let (given, actual) = (meta::text(new, field), meta::text(old, field));
        if given != actual {
            return Err(ApiError::bad_request(format!(
                "the {field} of the object ({given}) does not match the {field} on the URL ({actual})"
            )));
        }
    }
    for field in ["kind", "apiVersion"] {
        if new[field] != old[field] {
            let message = format!("a patch may not change {field}");
            return Err(ApiError::bad_request(message));
        }
    }
    Ok(())
}

/// A patch that sets a resourceVersion of its own is conditional.
fn conditional_version(new: &Value, old: &Value) -> Result<Option<u64>> {
    if meta::text(new, "resourceVersion") == meta::text(old, "resourceVersion") {
        return Ok(None);
    }
    expected_version(new)
}
