//! Subresources, apart from those that are forwarded to agents.

pub(super) mod binding;
mod eviction;
pub(super) mod token;

use http::header;
use kennel_types::Verb;

use super::call::Call;
use super::{patch, read, update};
use crate::api::Api;
use crate::registry::{Handler, Subresource};
use crate::request::accept;
use crate::request::path::Place;
use crate::response::Reply;
use crate::status::{ApiError, Result};

/// Carries out a request about a subresource.
pub(super) async fn serve(
    api: &Api,
    call: &Call,
    place: &Place,
    subresource: &Subresource,
    verb: Verb<'_>,
) -> Result<Reply> {
    if let Handler::Binding | Handler::Eviction | Handler::Token = subresource.handler {
        // What they answer with has no table.
        accept::accepts_object(call.header(header::ACCEPT))?;
    }
    match (subresource.handler, verb) {
        (Handler::Binding, _) => binding::create(api, call, place).await,
        (Handler::Eviction, _) => eviction::create(api, call, place).await,
        (Handler::Token, _) => token::create(api, call, place),
        (Handler::Update(_), Verb::Get) => read::get(api, call, place).await,
        (Handler::Update(part), Verb::Update) => update::update_part(api, call, place, part).await,
        (Handler::Update(part), _) => patch::patch_part(api, call, place, part).await,
        (Handler::Connect(_), _) => Err(ApiError::no_such_resource()),
    }
}
