//! Subresources: parts of objects with rules of their own.

pub(super) mod binding;
mod eviction;
mod token;

use kennel_types::Verb;

use super::call::{Call, Reply};
use super::update::Part;
use super::{patch, read, update};
use crate::api::Api;
use crate::registry::Subresource;
use crate::request::path::Place;
use crate::status::{ApiError, Result};

/// Carries out a request about a subresource.
pub(super) async fn serve(
    api: &Api,
    call: &Call,
    place: &Place,
    subresource: &Subresource,
    verb: Verb<'_>,
) -> Result<Reply> {
    let part = match (subresource.name, verb) {
        ("binding", _) => return binding::create(api, call, place).await,
        ("eviction", _) => return eviction::create(api, call, place).await,
        ("token", _) => return token::create(api, call, place),
        (_, Verb::Get) => return read::get(api, call, place).await,
        ("status", _) => Part::Status,
        ("approval", _) => Part::Approval,
        ("finalize", _) => Part::Finalize,
        _ => return Err(ApiError::no_such_resource()),
    };
    match verb {
        Verb::Update => update::update_part(api, call, place, part).await,
        _ => patch::patch_part(api, call, place, part).await,
    }
}
