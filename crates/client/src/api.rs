//! Paths of resources, and writes of untyped JSON, so that unknown fields survive. The writes discard the response: the
//! watch delivers the result.

use kennel_types::Identity;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions, Request};
use kube::{Client, Error};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

/// A list of the API, as far as its readers need it.
#[derive(Clone, Debug, Deserialize)]
pub struct List<T> {
    #[serde(default)]
    pub metadata: ListMeta,
    pub items: Vec<T>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ListMeta {
    /// The token of the next page.
    pub r#continue: Option<String>,
}

/// Path of a collection in a namespace of the core group: `pods`, for example.
pub fn core_path(namespace: &str, plural: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/{plural}")
}

/// Path of a collection of the core group outside namespaces: `nodes`, for example.
pub fn cluster_path(plural: &str) -> String {
    format!("/api/v1/{plural}")
}

pub fn pod_path(pod: &Identity) -> String {
    format!("{}/{}", core_path(&pod.namespace, "pods"), pod.name)
}

pub fn node_path(name: &str) -> String {
    format!("{}/{name}", cluster_path("nodes"))
}

/// Path of a collection in a namespace of a named group.
pub fn group_path(group_version: &str, namespace: &str, plural: &str) -> String {
    format!("/apis/{group_version}/namespaces/{namespace}/{plural}")
}

/// POST to a collection, or to a subresource given in the path.
pub async fn create(client: &Client, path: &str, body: &Value) -> Result<(), Error> {
    let request = Request::new(path)
        .create(&PostParams::default(), body.to_string().into_bytes())
        .map_err(Error::BuildRequest)?;
    client.request::<IgnoredAny>(request).await.map(drop)
}

/// JSON merge PATCH of an object, or of one of its subresources.
pub async fn merge(
    client: &Client,
    path: &str,
    name: &str,
    subresource: Option<&str>,
    patch: &Value,
) -> Result<(), Error> {
    let (request, patch) = (Request::new(path), Patch::Merge(patch));
    let parameters = PatchParams::default();
    let request = match subresource {
        Some(sub) => request.patch_subresource(sub, name, &parameters, &patch),
        None => request.patch(name, &parameters, &patch),
    };
    let request = request.map_err(Error::BuildRequest)?;
    client.request::<IgnoredAny>(request).await.map(drop)
}

/// DELETE of the object with this uid; without `grace_seconds`, with the object's own grace period.
pub async fn delete(
    client: &Client,
    path: &str,
    name: &str,
    uid: &str,
    grace_seconds: Option<u32>,
) -> Result<(), Error> {
    let mut parameters = DeleteParams::default().preconditions(Preconditions {
        uid: Some(uid.to_owned()),
        resource_version: None,
    });
    parameters.grace_period_seconds = grace_seconds;
    let request = Request::new(path)
        .delete(name, &parameters)
        .map_err(Error::BuildRequest)?;
    client.request::<IgnoredAny>(request).await.map(drop)
}

/// The HTTP status of an error, if the API answered.
pub fn code(error: &Error) -> Option<u16> {
    match error {
        Error::Api(status) => Some(status.code),
        _ => None,
    }
}

/// The API's message, or how the request failed.
pub fn explain(error: &Error) -> String {
    match error {
        Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

/// Whether a failed deletion found the object deleted, or another one with its name.
pub fn already_gone(error: &Error) -> bool {
    matches!(code(error), Some(404 | 409))
}
