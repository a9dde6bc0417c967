//! `TokenRequest`: signs a token of a service account. Nothing is stored.

use kennel_types::Timestamp;
use serde_json::{Value, json};

use crate::admit::node_restriction;
use crate::api::Api;
use crate::clock;
use crate::field::{FieldError, Path};
use crate::object::Stored;
use crate::pki::token::{Claims, ISSUER, LIFE_SECONDS_MAX};
use crate::registry::{self, Resource};
use crate::request::path::Place;
use crate::response::Reply;
use crate::status::{ApiError, Result};
use crate::tree::{text, texts};
use crate::verbs::call::Call;
use crate::verbs::{At, decode};

/// The lifetime of a token if the request has none: upstream's hour.
const DEFAULT_SECONDS: i64 = 3600;
/// Upstream's bounds of the requested lifetime. The token's may be shorter.
const SECONDS: std::ops::RangeInclusive<i64> = 600..=(1 << 32);

pub(super) fn create(api: &Api, call: &Call, place: &Place) -> Result<Reply> {
    let at = At::of(place)?;
    let mut request = if call.body.is_empty() {
        json!({})
    } else {
        decode::other(call, "authentication.v1.TokenRequest", "TokenRequest")?
    };
    check_names(&at, &request)?;
    let place = (at.namespace.unwrap_or_default(), at.name);
    node_restriction::check_token(api, &call.user, at.row, place, &request)?;
    let account = at.stored(api)?;
    let spec = &request["spec"];
    let asked = spec["expirationSeconds"].as_i64();
    let asked = asked.unwrap_or(DEFAULT_SECONDS);
    check_seconds(asked)?;
    let audiences = audiences(spec);
    let bound = bound_objects(api, &at, &spec["boundObjectRef"])?;
    let seconds = asked.min(LIFE_SECONDS_MAX);
    let now = clock::now();
    let expires = now.as_secs() + seconds;
    let claims = Claims {
        namespace: at.namespace.unwrap_or_default(),
        account: (at.name, &account.head.uid),
        audiences: &audiences,
        bound,
        issued_at: now.as_secs(),
        expires_at: expires,
    };
    let token = api.authenticator.keys().sign(&claims);
    let token = token.map_err(ApiError::internal)?;
    let end = Timestamp::from_secs(expires);
    request["kind"] = "TokenRequest".into();
    request["apiVersion"] = "authentication.k8s.io/v1".into();
    request["metadata"] = json!({
        "name": at.name, "namespace": at.namespace, "creationTimestamp": now,
    });
    request["spec"]["audiences"] = json!(audiences);
    request["spec"]["expirationSeconds"] = seconds.into();
    request["status"] = json!({"token": token, "expirationTimestamp": end});
    let shortened = (seconds < asked)
        .then(|| format!("requested expiration of {asked} seconds shortened to {seconds} seconds"));
    Ok(Reply::value(201, &request).with_warnings(shortened.into_iter().collect()))
}

/// The audiences in the spec of a token request or review; by default the API itself.
pub(in crate::verbs) fn audiences(spec: &Value) -> Vec<String> {
    let mut audiences: Vec<String> = texts(spec, "audiences").map(str::to_owned).collect();
    if audiences.is_empty() {
        audiences.push(ISSUER.to_owned());
    }
    audiences
}

/// If the body names an account, it must be that of the URL.
fn check_names(at: &At<'_>, request: &Value) -> Result<()> {
    let metadata = Path::new("metadata");
    for (field, expected) in [
        ("name", at.name),
        ("namespace", at.namespace.unwrap_or_default()),
    ] {
        let said = text(&request["metadata"], field);
        if !said.is_empty() && said != expected {
            let words = format!("must match the service account {field} if specified");
            let error = FieldError::invalid(&metadata.child(field), said, &words);
            return Err(invalid(at.name, error));
        }
    }
    Ok(())
}

fn check_seconds(seconds: i64) -> Result<()> {
    if SECONDS.contains(&seconds) {
        return Ok(());
    }
    let words = if seconds < *SECONDS.start() {
        "may not specify a duration less than 10 minutes"
    } else {
        "may not specify a duration larger than 2^32 seconds"
    };
    let path = Path::new("spec").child("expirationSeconds");
    Err(invalid("", FieldError::invalid(&path, seconds, words)))
}

fn invalid(name: &str, error: FieldError) -> ApiError {
    ApiError::invalid_kind("authentication.k8s.io", "TokenRequest", name, &[error])
}

/// The claims about the object that a token is bound to, which must exist.
fn bound_objects(api: &Api, at: &At<'_>, reference: &Value) -> Result<Value> {
    if reference.is_null() {
        return Ok(json!({}));
    }
    let text = |field: &str| reference[field].as_str().unwrap_or_default();
    let (kind, name) = (text("kind"), text("name"));
    let plural = match (text("apiVersion"), kind) {
        ("" | "v1", "Pod") => "pods",
        ("" | "v1", "Secret") => "secrets",
        ("" | "v1", "Node") => "nodes",
        (version, kind) => return Err(unbindable(version, kind)),
    };
    let row = registry::core(plural);
    let namespace = if row.namespaced() { at.namespace } else { None };
    let stored = api.stored(row, namespace, name)?;
    let mut claims = json!({kind.to_lowercase(): {"name": name, "uid": stored.head.uid}});
    if kind == "Pod" {
        check_pod(at, row, &stored)?;
        let node = stored.head.field(row, "spec.nodeName").unwrap_or_default();
        if !node.is_empty() {
            claims["node"] = node_claim(api, node);
        }
    }
    let wanted = text("uid");
    if !wanted.is_empty() && wanted != &*stored.head.uid {
        let why = format!(
            "the UID in the bound object reference ({wanted}) does not match the UID in record. \
             The object might have been deleted and then recreated"
        );
        return Err(ApiError::conflict(row, name, &why));
    }
    Ok(claims)
}

fn unbindable(version: &str, kind: &str) -> ApiError {
    let version = match version.split_once('/') {
        Some(_) => version.to_owned(),
        None => format!("/{version}"),
    };
    ApiError::bad_request(format!(
        "cannot bind token to object of type {version}, Kind={kind}"
    ))
}

/// A pod's token is for the account that the pod runs as.
fn check_pod(at: &At<'_>, row: &'static Resource, stored: &Stored) -> Result<()> {
    if stored.head.field(row, "spec.serviceAccountName") == Some(at.name) {
        return Ok(());
    }
    Err(ApiError::bad_request(format!(
        "cannot bind token for serviceaccount {:?} to pod running with different serviceaccount name.",
        at.name
    )))
}

/// The node of a pod. One that is not there yet is known by its name alone.
fn node_claim(api: &Api, name: &str) -> Value {
    match api.stored(registry::core("nodes"), None, name) {
        Ok(node) => json!({"name": name, "uid": node.head.uid}),
        Err(_) => json!({"name": name}),
    }
}
