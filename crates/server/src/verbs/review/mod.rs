//! Reviews: questions that are posted and answered, and leave nothing behind. Each API group's reviews
//! have a room of their own; here is only what they share.

mod authentication;
mod authorization;

use super::call::{Call, Reply};
use super::{decode, meta};
use crate::api::Api;
use crate::registry::Posted;
use crate::status::{ApiError, Result};

/// Answers a review.
pub(super) fn answer(
    api: &Api,
    call: &Call,
    row: &'static Posted,
    namespace: Option<&str>,
) -> Result<Reply> {
    let mut review = decode::other(call, row.schema, row.kind)?;
    review["kind"] = row.kind.into();
    review["apiVersion"] = row.api_version().into();
    match row.group {
        "authentication.k8s.io" => authentication::answer(api, call, row, &mut review)?,
        "authorization.k8s.io" => authorization::answer(api, call, row, namespace, &mut review)?,
        _ => return Err(ApiError::no_such_resource()),
    }
    Ok(Reply::value(201, &review))
}
