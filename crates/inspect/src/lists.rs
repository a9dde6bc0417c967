//! Paginated lists of the API, as JSON.

use kennel_client::api::List;
use kube::api::{ListParams, Request};
use kube::{Client, Error};
use serde_json::Value;

/// Objects per page.
const PAGE_SIZE: u32 = 500;

/// Lists all objects that match the selectors.
pub async fn list(
    client: &Client,
    path: &str,
    labels: Option<&str>,
    fields: Option<&str>,
) -> Result<Vec<Value>, Error> {
    let mut params = ListParams::default().limit(PAGE_SIZE);
    params.label_selector = labels.map(str::to_owned);
    params.field_selector = fields.map(str::to_owned);
    let mut objects = Vec::new();
    loop {
        let request = Request::new(path)
            .list(&params)
            .map_err(Error::BuildRequest)?;
        let list: List<Value> = client.request(request).await?;
        objects.extend(list.items);
        match list.metadata.r#continue.filter(|token| !token.is_empty()) {
            Some(token) => params.continue_token = Some(token),
            None => return Ok(objects),
        }
    }
}

/// Reads one object of a collection.
pub async fn get(client: &Client, path: &str, name: &str) -> Result<Value, Error> {
    let request = Request::new(path)
        .get(name, &kube::api::GetParams::default())
        .map_err(Error::BuildRequest)?;
    client.request(request).await
}
