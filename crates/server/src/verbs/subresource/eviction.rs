//! Eviction: a graceful deletion that disruption budgets may refuse. Kennel has no disruption budgets, so
//! every eviction is a deletion.

use serde_json::Value;

use crate::admit::node_restriction;
use crate::api::Api;
use crate::request::path::Place;
use crate::response::Reply;
use crate::status::{self, ApiError, Result};
use crate::tree::text;
use crate::verbs::call::Call;
use crate::verbs::delete::delete_object;
use crate::verbs::options::DeleteOptions;
use crate::verbs::{At, decode};

pub(super) async fn create(api: &Api, call: &Call, place: &Place) -> Result<Reply> {
    let at = At::of(place)?;
    let eviction = decode::as_sent(call, "policy.v1.Eviction", "Eviction")?;
    check(&at, &eviction)?;
    let pod = at.stored(api)?;
    node_restriction::check_eviction(&call.user, at.row, &pod)?;
    let mut options = DeleteOptions::from_value(&eviction["deleteOptions"])?;
    options.dry_run |= call.query.dry_run("CreateOptions")?;
    delete_object(api, &call.user, at, &options).await?;
    Ok(Reply::value(201, &status::created()))
}

/// policy/v1 and the policy/v1beta1 of old clients are the same here.
fn check(at: &At<'_>, eviction: &Value) -> Result<()> {
    let kind = eviction["kind"].as_str().unwrap_or("Eviction");
    let version = eviction["apiVersion"].as_str().unwrap_or("policy/v1");
    if kind != "Eviction" || !matches!(version, "policy/v1" | "policy/v1beta1") {
        let message = format!("no kind \"{kind}\" is registered for version \"{version}\" here");
        return Err(ApiError::bad_request(message));
    }
    let name = text(eviction, "metadata.name");
    if !name.is_empty() && name != at.name {
        let message = "name in URL does not match name in Eviction object";
        return Err(ApiError::bad_request(message));
    }
    Ok(())
}
