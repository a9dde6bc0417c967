//! Reviews: questions that are posted and answered, and leave nothing behind.

use serde_json::{Value, json};

use super::call::{Call, Reply};
use super::{decode, meta};
use crate::api::Api;
use crate::registry::Posted;
use crate::request::User;
use crate::status::{ApiError, Result};

/// Answers a review.
pub(super) fn answer(
    _api: &Api,
    call: &Call,
    row: &'static Posted,
    _namespace: Option<&str>,
) -> Result<Reply> {
    let mut review = decode::other(call, row.schema, row.kind)?;
    review["kind"] = row.kind.into();
    review["apiVersion"] = row.api_version().into();
    review["status"] = match row.plural {
        "selfsubjectreviews" => {
            review["metadata"]["creationTimestamp"] = meta::now().into();
            json!({"userInfo": user_info(&call.user)})
        }
        _ => return Err(ApiError::no_such_resource()),
    };
    Ok(Reply::value(201, &review))
}

/// A user as reviews show one.
fn user_info(user: &User) -> Value {
    let mut info = json!({"username": user.name, "groups": user.groups});
    if !user.uid.is_empty() {
        info["uid"] = json!(user.uid);
    }
    if !user.extra.is_empty() {
        info["extra"] = json!(user.extra);
    }
    info
}
