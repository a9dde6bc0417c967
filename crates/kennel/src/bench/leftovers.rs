//! Everything of the benchmark that is in a cluster: finding it, and taking it away.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use futures_util::stream::{self, StreamExt as _};
use k8s_openapi::api::core::v1::{Namespace, Node};
use kennel_client::api;
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams};

use super::manifest::{NAMESPACE, NODE_LABEL};
use super::say;

/// How many objects are deleted at once.
const AT_ONCE: usize = 64;
/// How many nodes are listed at once.
const PAGE: u32 = 1000;
/// How often it is looked whether the namespace is gone.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long that may take.
const PATIENCE: Duration = Duration::from_mins(2);

/// What is there.
pub(super) struct Leftovers {
    nodes: Vec<String>,
    namespace: bool,
}

impl Leftovers {
    /// Looks.
    pub(super) async fn find(client: &Client) -> Result<Self> {
        let (key, value) = NODE_LABEL;
        let all: Api<Node> = Api::all(client.clone());
        let mut ours = ListParams::default()
            .labels(&format!("{key}={value}"))
            .limit(PAGE);
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

    /// An error if there is anything.
    pub(super) fn none(&self) -> Result<()> {
        ensure!(self.is_empty(), "{} are there again", self.describe());
        Ok(())
    }

    /// For people.
    pub(super) fn describe(&self) -> String {
        let namespace = if self.namespace {
            format!(" and the namespace {NAMESPACE}")
        } else {
            String::new()
        };
        format!("{} nodes{namespace}", self.nodes.len())
    }

    /// Takes it all away, and waits until it is gone.
    pub(super) async fn remove(self, client: &Client) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        say(format_args!("removing {}", self.describe()));
        if self.namespace {
            tokio::time::timeout(PATIENCE, remove_namespace(client))
                .await
                .context("the namespace does not go away: is there a namespace controller?")??;
        }
        let removals = stream::iter(&self.nodes).map(|name| remove_node(client, name));
        let removals = removals.buffer_unordered(AT_ONCE);
        let failures: Vec<String> = removals
            .filter_map(async |failed| failed.err())
            .collect()
            .await;
        if let Some(first) = failures.first() {
            bail!("{} nodes could not be removed: {first}", failures.len());
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
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Ok(())
}

/// The node and its lease: not every cluster collects what owners leave behind.
async fn remove_node(client: &Client, name: &str) -> Result<(), String> {
    use kube::api::Request;
    use serde::de::IgnoredAny;
    let leases = api::group_path("coordination.k8s.io/v1", "kube-node-lease", "leases");
    for path in [api::cluster_path("nodes"), leases] {
        let request = Request::new(path).delete(name, &DeleteParams::default());
        let request = request.map_err(|error| error.to_string())?;
        match client.request::<IgnoredAny>(request).await {
            Err(error) if !api::already_gone(&error) => return Err(api::explain(&error)),
            _ => {}
        }
    }
    Ok(())
}
