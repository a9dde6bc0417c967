//! Reviews of authentication and authorisation: POSTs that are answered and not stored.

mod authentication;
mod authorization;

use super::call::Call;
use super::{decode, meta};
use crate::api::Api;
use crate::registry::{CreateOnly, PostHandler};
use crate::response::Reply;
use crate::status::{ApiError, Result};

pub(super) fn answer(
    api: &Api,
    call: &Call,
    row: &'static CreateOnly,
    namespace: Option<&str>,
) -> Result<Reply> {
    let mut review = decode::other(call, row.schema, row.kind)?;
    review["kind"] = row.kind.into();
    review["apiVersion"] = row.api_version().into();
    match row.handler {
        PostHandler::SelfSubjectReview => authentication::self_subject_review(call, &mut review),
        PostHandler::TokenReview => authentication::token_review(api, &mut review)?,
        PostHandler::AccessReview(subject) => {
            authorization::access_review(api, call, (row, subject), namespace, &mut review)?;
        }
        PostHandler::RulesReview => authorization::rules_review(api, call, &mut review)?,
        PostHandler::Binding => return Err(ApiError::no_such_resource()),
    }
    Ok(Reply::value(201, &review))
}
