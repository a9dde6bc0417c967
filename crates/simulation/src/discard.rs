//! Watches whose objects nobody reads. They cost the server what those of an agent do, and this process little: bytes are counted
//! and not decoded.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http_body_util::BodyExt as _;
use kennel_client::backoff::{Backoff, Policy};
use kennel_client::connection;
use kube::api::{ListParams, Request, WatchParams};
use kube::client::Body;
use kube::{Client, Error};
use serde::Deserialize;

/// As `kube`'s watches.
const PAGE_SIZE: u32 = 500;
const TIMEOUT_SECONDS: u32 = 290;
/// Before a failed list or watch is tried again.
const RETRY: Policy = Policy::exponential(Duration::from_millis(200), Duration::from_secs(10));

/// What is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Objects {
    pub(super) path: std::borrow::Cow<'static, str>,
    pub(super) labels: &'static str,
    pub(super) fields: &'static str,
}

const fn labelled(path: &'static str, labels: &'static str) -> Objects {
    Objects {
        path: std::borrow::Cow::Borrowed(path),
        labels,
        fields: "",
    }
}

/// What each agent with a service proxy and a pod network watches: `kennel_proxy::run` and `kennel_node::network`.
pub(super) const AGENT: [Objects; 3] = [
    labelled(
        "/api/v1/services",
        "!service.kubernetes.io/service-proxy-name",
    ),
    labelled(
        "/apis/discovery.k8s.io/v1/endpointslices",
        "!service.kubernetes.io/headless",
    ),
    labelled(
        "/api/v1/namespaces/kube-node-lease/configmaps",
        kennel_core::pod_network::object::SELECTOR,
    ),
];

/// The config map with the cluster's authorities, which every token volume mounts.
pub(super) fn authorities(namespace: &str) -> Objects {
    Objects {
        path: format!("/api/v1/namespaces/{namespace}/configmaps").into(),
        labels: "",
        fields: "metadata.name=kube-root-ca.crt",
    }
}

#[derive(Deserialize)]
struct Page {
    metadata: PageMeta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageMeta {
    resource_version: String,
    #[serde(default)]
    r#continue: Option<String>,
}

/// A watch that has begun.
pub(super) struct Discard {
    client: Client,
    objects: Objects,
    bytes: Arc<AtomicU64>,
    body: Body,
}

impl Discard {
    /// Lists all objects, page by page, and begins to watch. Retries for ever.
    pub(super) async fn begin(client: Client, objects: Objects, bytes: Arc<AtomicU64>) -> Self {
        let mut retry = Backoff::new(RETRY);
        loop {
            let begun = async {
                let version = list(&client, &objects, PAGE_SIZE).await?;
                watch(&client, &objects, &version).await
            };
            match begun.await {
                Ok(body) => {
                    return Self {
                        client,
                        objects,
                        bytes,
                        body,
                    };
                }
                Err(error) => {
                    let (path, why) = (&objects.path, connection::describe(&error));
                    tracing::warn!("watching {path} failed: {why}");
                }
            }
            retry.sleep().await;
        }
    }

    /// Reads and discards, for ever. An interrupted watch goes on from the present: nobody misses what was in between.
    pub(super) async fn run(mut self) {
        let mut retry = Backoff::new(RETRY.reset_after(Duration::from_secs(30)));
        loop {
            while let Some(Ok(frame)) = self.body.frame().await {
                let bytes = frame.data_ref().map_or(0, bytes_len);
                self.bytes.fetch_add(bytes, Ordering::Relaxed);
            }
            retry.sleep().await;
            let begun = async {
                let version = list(&self.client, &self.objects, 1).await?;
                watch(&self.client, &self.objects, &version).await
            };
            match begun.await {
                Ok(body) => self.body = body,
                Err(error) => {
                    let (path, why) = (&self.objects.path, connection::describe(&error));
                    tracing::debug!("watching {path} failed: {why}");
                }
            }
        }
    }
}

fn bytes_len(data: &impl AsRef<[u8]>) -> u64 {
    data.as_ref().len() as u64
}

/// The newest resource version. With a page size of 1, the first page alone is read.
async fn list(client: &Client, objects: &Objects, page_size: u32) -> Result<String, Error> {
    let mut parameters = ListParams::default().limit(page_size);
    if !objects.labels.is_empty() {
        parameters = parameters.labels(objects.labels);
    }
    if !objects.fields.is_empty() {
        parameters = parameters.fields(objects.fields);
    }
    loop {
        let request = Request::new(&*objects.path).list(&parameters);
        let page: Page = client
            .request(request.map_err(Error::BuildRequest)?)
            .await?;
        let next = page.metadata.r#continue.filter(|token| !token.is_empty());
        match next {
            Some(token) if page_size > 1 => parameters = parameters.continue_token(&token),
            _ => return Ok(page.metadata.resource_version),
        }
    }
}

async fn watch(client: &Client, objects: &Objects, version: &str) -> Result<Body, Error> {
    let mut parameters = WatchParams::default().timeout(TIMEOUT_SECONDS);
    if !objects.labels.is_empty() {
        parameters = parameters.labels(objects.labels);
    }
    if !objects.fields.is_empty() {
        parameters = parameters.fields(objects.fields);
    }
    let request = Request::new(&*objects.path).watch(&parameters, version);
    let request = request.map_err(Error::BuildRequest)?;
    let response = client.send(request.map(Body::from)).await?;
    if response.status().is_success() {
        return Ok(response.into_body());
    }
    let status = response.status();
    let words = format!("the API answered a watch with {status}");
    Err(Error::Service(words.into()))
}
