//! Finds and removes the benchmark's objects in a cluster.

use std::fmt::Debug;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use futures_util::stream::{self, StreamExt as _};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::{Namespace, Node};
use kennel_client::api;
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams};
use serde::de::{DeserializeOwned, IgnoredAny};

use super::manifest::{NAMESPACE, NODE_LABEL};
use super::{certificates, progress, rights};

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
    /// Paths of certificate requests and of what nodes may read.
    others: Vec<String>,
}

impl BenchObjects {
    pub(super) async fn find(client: &Client) -> Result<Self> {
        let nodes = labelled(&Api::<Node>::all(client.clone())).await;
        let nodes = nodes.context("cannot list nodes")?;
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let namespace = namespaces.get_metadata_opt(NAMESPACE).await;
        Ok(Self {
            nodes,
            namespace: namespace.context("cannot read namespaces")?.is_some(),
            others: others(client).await?,
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty() && !self.namespace && self.others.is_empty()
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
        let others = match self.others.len() {
            0 => String::new(),
            count => format!(" and {count} certificate requests and roles"),
        };
        format!("{} nodes{namespace}{others}", self.nodes.len())
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
        let nodes = self.nodes.iter().flat_map(|name| {
            // The lease, too, since not every cluster runs a garbage collector.
            let leases = api::group_path("coordination.k8s.io/v1", "kube-node-lease", "leases");
            [api::node_path(name), format!("{leases}/{name}")]
        });
        let all = nodes.chain(self.others);
        let removals = stream::iter(all).map(|path| remove(client, path));
        let removals = removals.buffer_unordered(CONCURRENCY);
        let failures: Vec<kube::Error> = removals
            .filter_map(async |failed| failed.err())
            .collect()
            .await;
        if let Some(first) = failures.first() {
            bail!(
                "cannot remove {} objects: {}",
                failures.len(),
                api::explain(first)
            );
        }
        Ok(())
    }
}

/// The names of the benchmark's objects of one kind.
async fn labelled<K>(all: &Api<K>) -> kube::Result<Vec<String>>
where
    K: kube::Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let (key, value) = NODE_LABEL;
    let ours = format!("{key}={value}");
    let mut ours = ListParams::default().labels(&ours).limit(PAGE_SIZE);
    let mut names = Vec::new();
    loop {
        let page = all.list_metadata(&ours).await?;
        names.extend(page.iter().map(kube::ResourceExt::name_any));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => ours = ours.continue_token(&token),
            None => return Ok(names),
        }
    }
}

/// What `--connections` makes: nothing, for a user who may not read it.
async fn others(client: &Client) -> Result<Vec<String>> {
    let requests: Api<CertificateSigningRequest> = Api::all(client.clone());
    let requests = match labelled(&requests).await {
        Err(error) if api::code(&error) == Some(403) => return Ok(Vec::new()),
        listed => listed.context("cannot list certificate requests")?,
    };
    let path = |name| format!("{}/{name}", certificates::REQUESTS);
    let mut paths: Vec<String> = requests.into_iter().map(path).collect();
    for path in rights::paths() {
        let request = http::Request::get(&path).body(Vec::new())?;
        match client.request::<IgnoredAny>(request).await {
            Ok(_) => paths.push(path),
            Err(error) if matches!(api::code(&error), Some(403 | 404)) => {}
            Err(error) => bail!("cannot read {path}: {}", api::explain(&error)),
        }
    }
    Ok(paths)
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

async fn remove(client: &Client, path: String) -> kube::Result<()> {
    let request = http::Request::delete(path).body(Vec::new());
    let request = request.map_err(kube::Error::HttpError)?;
    match client.request::<IgnoredAny>(request).await {
        Err(error) if !api::already_gone(&error) => Err(error),
        _ => Ok(()),
    }
}
