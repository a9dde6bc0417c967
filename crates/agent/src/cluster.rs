//! Clients of remote clusters, for commands that work against any Kubernetes API.

use std::path::Path;

use anyhow::Context as _;
use kennel_client::connection::{self, Origin};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use crate::node::absolute;

/// A client of the cluster of this kubeconfig, of `$KUBECONFIG` or `~/.kube/config`, or of the pod that this process
/// runs in, whichever is found first.
pub async fn client(kubeconfig: Option<&Path>) -> anyhow::Result<Client> {
    client_of(config(kubeconfig).await?)
}

/// The configuration of [`client`].
pub async fn config(kubeconfig: Option<&Path>) -> anyhow::Result<Config> {
    config_with_context(kubeconfig, None).await
}

/// As [`config`], with this context instead of the current one.
pub async fn config_with_context(
    kubeconfig: Option<&Path>,
    context: Option<&str>,
) -> anyhow::Result<Config> {
    let options = KubeConfigOptions {
        context: context.map(str::to_owned),
        ..KubeConfigOptions::default()
    };
    match (kubeconfig, context) {
        (Some(path), _) => {
            let path = &absolute(path);
            let config = Config::from_custom_kubeconfig(read(path)?, &options).await;
            config.with_context(|| format!("cannot use {}", path.display()))
        }
        (None, Some(_)) => {
            let config = Config::from_kubeconfig(&options).await;
            config.context("cannot use $KUBECONFIG or ~/.kube/config")
        }
        (None, None) => Config::infer().await.context(
            "no cluster is configured: give --kubeconfig, set $KUBECONFIG, or run in a cluster's pod",
        ),
    }
}

/// Fails if the file is not a kubeconfig.
pub fn check_file(kubeconfig: &Path) -> anyhow::Result<()> {
    read(&absolute(kubeconfig)).map(drop)
}

fn read(path: &Path) -> anyhow::Result<Kubeconfig> {
    Kubeconfig::read_from(path).with_context(|| format!("cannot read {}", path.display()))
}

pub fn client_of(config: Config) -> anyhow::Result<Client> {
    tracing::info!("using the API at {}", config.cluster_url);
    connection::client(config, Origin::Kubeconfig).context("cannot make a client of the API")
}
