//! Lists of the API, a page at a time, as trees.

use kube::api::{ListParams, Request};
use kube::{Client, Error};
use serde::Deserialize;
use serde_json::Value;

/// How many objects are asked for at once.
const PAGE: u32 = 500;

#[derive(Default, Deserialize)]
#[serde(default)]
struct List {
    metadata: Metadata,
    items: Vec<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    r#continue: Option<String>,
}

/// All objects at a path that these selectors select.
pub(super) async fn all(
    client: &Client,
    path: &str,
    labels: Option<&str>,
    fields: Option<&str>,
) -> Result<Vec<Value>, Error> {
    let mut params = ListParams::default().limit(PAGE);
    params.label_selector = labels.map(str::to_owned);
    params.field_selector = fields.map(str::to_owned);
    let mut objects = Vec::new();
    loop {
        let request = Request::new(path)
            .list(&params)
            .map_err(Error::BuildRequest)?;
        let list: List = client.request(request).await?;
        objects.extend(list.items);
        match list.metadata.r#continue.filter(|token| !token.is_empty()) {
            Some(token) => params.continue_token = Some(token),
            None => return Ok(objects),
        }
    }
}

/// One object.
pub(super) async fn one(client: &Client, path: &str, name: &str) -> Result<Value, Error> {
    let request = Request::new(path)
        .get(name, &kube::api::GetParams::default())
        .map_err(Error::BuildRequest)?;
    client.request(request).await
}

/// Is it a refusal for want of rights?
pub(super) fn forbidden(error: &Error) -> bool {
    matches!(error, Error::Api(status) if status.code == 403)
}

/// Is there no such thing?
pub(super) fn not_found(error: &Error) -> bool {
    matches!(error, Error::Api(status) if status.code == 404)
}
