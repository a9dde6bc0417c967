//! Finds and removes the benchmark's objects in a cluster.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use futures_util::stream::{self, StreamExt as _};
use k8s_openapi::api::core::v1::{Namespace, Node};
use kennel_client::api;
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams};

use super::manifest::{NAMESPACE, NODE_LABEL};
use super::progress;

/// Concurrent deletions.
const CONCURRENCY: usize = 64;
/// Nodes per page of a list.
const PAGE_SIZE: u32 = 1000;
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How long the deletion of the namespace may take.
const NAMESPACE_TIMEOUT: Duration = Duration::from_mins(2);

pub(super) struct BenchObjects {
    nodes: Vec<String>,
    namespace: bool,
}

impl BenchObjects {
    pub(super) async fn find(client: &Client) -> Result<Self> {
        let (key, value) = NODE_LABEL;
        let all: Api<Node> = Api::all(client.clone());
        let mut ours = ListParams::default()
            .labels(&format!("{key}={value}"))
            .limit(PAGE_SIZE);
        let mut nodes = Vec::new();
        loop {
            let page = all
                .list_metadata(&ours)
                .await
                .context("cannot list nodes")?;
            nodes.extend(page.iter().map(kube::ResourceExt::name_any));
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => ours = ours.continue_token(&token),
                None => break,
            }
        }
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let namespace = namespaces.get_metadata_opt(NAMESPACE).await;
        Ok(Self {
            nodes,
            namespace: namespace.context("cannot read namespaces")?.is_some(),
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty() && !self.namespace
    }

    pub(super) fn ensure_empty(&self) -> Result<()> {
        ensure!(self.is_empty(), "{} are left", self.describe());
        Ok(())
    }

    pub(super) fn describe(&self) -> String {
        let namespace = if self.namespace {
            format!(" and the namespace {NAMESPACE}")
        } else {
            String::new()
        };
        format!("{} nodes{namespace}", self.nodes.len())
    }

    /// Deletes all objects, and waits until they are gone.
    pub(super) async fn remove(self, client: &Client) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        progress(format_args!("removing {}", self.describe()));
        if self.namespace {
            tokio::time::timeout(NAMESPACE_TIMEOUT, remove_namespace(client))
                .await
                .context("the namespace is not deleted: is a namespace controller running?")??;
        }
        let removals = stream::iter(&self.nodes).map(|name| remove_node(client, name));
        let removals = removals.buffer_unordered(CONCURRENCY);
        let failures: Vec<kube::Error> = removals
            .filter_map(async |failed| failed.err())
            .collect()
            .await;
        if let Some(first) = failures.first() {
            bail!(
                "cannot remove {} nodes: {}",
                failures.len(),
                api::explain(first)
            );
        }
        Ok(())
    }
}

async fn remove_namespace(client: &Client) -> Result<()> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    match namespaces.delete(NAMESPACE, &DeleteParams::default()).await {
        Err(error) if !api::already_gone(&error) => {
            bail!("cannot delete the namespace: {}", api::explain(&error));
        }
        _ => {}
    }
    while namespaces.get_metadata_opt(NAMESPACE).await?.is_some() {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Ok(())
}

/// Deletes the node and its lease, since not every cluster runs a garbage collector.
async fn remove_node(client: &Client, name: &str) -> kube::Result<()> {
    use kube::api::Request;
    use serde::de::IgnoredAny;
    let leases = api::group_path("coordination.k8s.io/v1", "kube-node-lease", "leases");
    for path in [api::cluster_path("nodes"), leases] {
        let request = Request::new(path).delete(name, &DeleteParams::default());
        let request = request.map_err(kube::Error::BuildRequest)?;
        match client.request::<IgnoredAny>(request).await {
            Err(error) if !api::already_gone(&error) => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
