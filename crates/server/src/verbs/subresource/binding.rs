//! Binding: sets the node of a pod, once.

use serde_json::Value;

use crate::api::Api;
use crate::field::{ErrorList as _, Errors, Path};
use crate::kinds;
use crate::registry::{self, Part};
use crate::request::path::Place;
use crate::response::Reply;
use crate::status::{self, ApiError, Result};
use crate::tree::text;
use crate::verbs::call::Call;
use crate::verbs::managed_fields::Author;
use crate::verbs::update::{Change, Edit, modify};
use crate::verbs::{At, decode, meta};

pub(in crate::verbs) async fn create(api: &Api, call: &Call, place: &Place) -> Result<Reply> {
    let binding = decode::other(call, "core.v1.Binding", "Binding")?;
    bind(api, call, At::of(place)?, &binding).await
}

/// Serves a binding that is posted to the namespace and names its pod in its metadata.
pub(in crate::verbs) async fn create_by_body(
    api: &Api,
    call: &Call,
    namespace: &str,
) -> Result<Reply> {
    let binding = decode::other(call, "core.v1.Binding", "Binding")?;
    let name = text(&binding, "metadata.name").to_owned();
    let row = registry::core("pods");
    bind(
        api,
        call,
        At {
            row,
            namespace: Some(namespace),
            name: &name,
        },
        &binding,
    )
    .await
}

async fn bind(api: &Api, call: &Call, at: At<'_>, binding: &Value) -> Result<Reply> {
    let dry_run = call.query.dry_run("CreateOptions")?;
    let node = target(binding)?;
    let uid = text(binding, "metadata.uid");
    let change = Change {
        at,
        by: Author {
            user: &call.user,
            manager: "",
        },
        part: Part::Binding,
        dry_run,
    };
    modify(api, change, |old| {
        let pod = &old.tree;
        let actual = text(pod, "metadata.uid");
        if !uid.is_empty() && uid != actual {
            let why = format!(
                "Precondition failed: UID in precondition: {uid}, UID in object meta: {actual}"
            );
            return Err(ApiError::conflict(at.row, at.name, &why));
        }
        let mut document = old.clone();
        kinds::pod::bind(
            &mut document.tree,
            &node,
            &binding["metadata"],
            &meta::now(),
        )
        .map_err(|error| not_bindable(&at, &error.to_string()))?;
        Ok(Edit::of(document))
    })
    .await?;
    Ok(Reply::value(201, &status::created()))
}

fn target(binding: &Value) -> Result<String> {
    let path = Path::new("target");
    let kind = binding["target"]["kind"].as_str().unwrap_or_default();
    let mut errors = Errors::new();
    if !matches!(kind, "" | "Node") {
        let kind_path = path.child("kind");
        errors.not_supported(&kind_path, kind, &["Node", "<empty>"]);
    }
    let name = binding["target"]["name"].as_str().unwrap_or_default();
    if name.is_empty() {
        errors.required(&path.child("name"), "");
    }
    if errors.is_empty() {
        return Ok(name.to_owned());
    }
    Err(ApiError::invalid_kind(
        "",
        "Binding",
        text(binding, "metadata.name"),
        &errors,
    ))
}

fn not_bindable(at: &At<'_>, why: &str) -> ApiError {
    let mut error = ApiError::conflict(at.row, at.name, why);
    // Upstream names the subresource here, and nowhere else.
    error.message = error.message.replacen("on pods ", "on pods/binding ", 1);
    error.details["kind"] = "pods/binding".into();
    error
}
