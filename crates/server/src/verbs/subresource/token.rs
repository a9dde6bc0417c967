//! Tokens of service accounts: `TokenRequest` in, signed token out. Nothing is stored.

use serde_json::{Value, json};

use crate::api::Api;
use crate::field::{FieldError, Path};
use crate::object::{self, Document};
use crate::pki::token::{Claims, ISSUER};
use crate::registry;
use crate::request::path::Place;
use crate::status::{ApiError, Result};
use crate::verbs::call::{Call, Reply};
use crate::verbs::{At, decode, meta};

/// What a token lives when the request does not say; upstream's hour.
const DEFAULT_SECONDS: i64 = 3600;
/// Upstream's bounds of a token's life.
const SECONDS: std::ops::RangeInclusive<i64> = 600..=(1 << 32);

pub(super) fn create(api: &Api, call: &Call, place: &Place) -> Result<Reply> {
    let at = At::of(place)?;
    let found = api.store.get(&at.key());
    let account = found.ok_or_else(|| ApiError::not_found(at.row, at.name))?;
    let mut request = if call.body.is_empty() {
        json!({})
    } else {
        decode::other(call, "authentication.v1.TokenRequest", "TokenRequest")?
    };
    let seconds = request["spec"]["expirationSeconds"]
        .as_i64()
        .unwrap_or(DEFAULT_SECONDS);
    check_seconds(&at, seconds)?;
    let audiences: Vec<String> = match request["spec"]["audiences"].as_array() {
        Some(list) if !list.is_empty() => list
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        _ => vec![ISSUER.to_owned()],
    };
    let bound = bound_object(api, &at, &request["spec"]["boundObjectRef"])?;
    let now = jiff::Timestamp::now();
    let expires = now.as_second() + seconds;
    let claims = Claims {
        namespace: at.namespace.unwrap_or_default(),
        account: (at.name, &account.head.uid),
        audiences: &audiences,
        bound,
        issued_at: now.as_second(),
        expires_at: expires,
    };
    let token = api.tokens.sign(&claims).map_err(ApiError::internal)?;
    let end = jiff::Timestamp::from_second(expires).unwrap_or(now);
    request["kind"] = "TokenRequest".into();
    request["apiVersion"] = "authentication.k8s.io/v1".into();
    request["metadata"] = json!({
        "name": at.name, "namespace": at.namespace, "creationTimestamp": meta::now(),
    });
    request["spec"]["audiences"] = json!(audiences);
    request["spec"]["expirationSeconds"] = seconds.into();
    request["status"] = json!({"token": token, "expirationTimestamp": meta::at(end)});
    Ok(Reply::value(201, &request))
}

fn check_seconds(at: &At<'_>, seconds: i64) -> Result<()> {
    if SECONDS.contains(&seconds) {
        return Ok(());
    }
    let words = if seconds < *SECONDS.start() {
        "may not specify a duration less than 10 minutes"
    } else {
        "may not specify a duration larger than 2^32 seconds"
    };
    let path = Path::new("spec");
    let error = FieldError::invalid(&path.child("expirationSeconds"), &seconds.into(), words);
    let kind = ("authentication.k8s.io", "TokenRequest");
    Err(ApiError::invalid_kind(kind.0, kind.1, at.name, &[error]))
}

/// The claim of the object a token is bound to, after checking that it is there.
fn bound_object(api: &Api, at: &At<'_>, reference: &Value) -> Result<Value> {
    let Some(kind) = reference["kind"].as_str() else {
        return Ok(json!({}));
    };
    let plural = match kind {
        "Pod" => "pods",
        "Secret" => "secrets",
        "Node" => "nodes",
        other => {
            let message = format!(
                "cannot bind token for serviceaccount {:?} to {other}",
                at.name
            );
            return Err(ApiError::bad_request(message));
        }
    };
    let row = registry::find("", "v1", plural).ok_or_else(ApiError::no_such_resource)?;
    let name = reference["name"].as_str().unwrap_or_default();
    let namespace = if row.namespaced() { at.namespace } else { None };
    let found = api.store.get(&object::key(row, namespace, name));
    let stored = found.ok_or_else(|| ApiError::not_found(row, name))?;
    let wanted = reference["uid"].as_str().unwrap_or_default();
    if !wanted.is_empty() && wanted != &*stored.head.uid {
        let why = format!(
            "the UID in the bound object reference ({wanted}) does not match the UID in record. \
             The object might have been deleted and then recreated"
        );
        return Err(ApiError::conflict(row, name, &why));
    }
    let mut claim = json!({kind.to_lowercase(): {"name": name, "uid": stored.head.uid}});
    if kind == "Pod" {
        let pod = Document::from_stored(row, &stored)
            .map_err(ApiError::internal)?
            .tree;
        if pod["spec"]["serviceAccountName"].as_str() != Some(at.name) {
            let message = format!(
                "cannot bind token for serviceaccount {:?} to pod running with different serviceaccount name.",
                at.name
            );
            return Err(ApiError::bad_request(message));
        }
        claim["node"] = node_claim(api, &pod);
    }
    Ok(claim)
}

fn node_claim(api: &Api, pod: &Value) -> Value {
    let name = pod["spec"]["nodeName"].as_str().unwrap_or_default();
    let row = registry::find("", "v1", "nodes");
    let node = row.and_then(|row| api.store.get(&object::key(row, None, name)));
    match node {
        Some(node) => json!({"name": name, "uid": node.head.uid}),
        None => Value::Null,
    }
}
