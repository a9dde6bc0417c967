//! Clients of a cluster that runs elsewhere, for the verbs that work against any Kubernetes API.

use std::path::Path;

use anyhow::Context as _;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

/// A client of the cluster of this kubeconfig, of `$KUBECONFIG` or `~/.kube/config`, or of the pod that
/// we run in, whichever is found first.
pub async fn client(kubeconfig: Option<&Path>) -> anyhow::Result<Client> {
    of(config(kubeconfig).await?)
}

/// How to reach the cluster that [`client`] finds.
pub async fn config(kubeconfig: Option<&Path>) -> anyhow::Result<Config> {
    config_of(kubeconfig, None).await
}

/// As [`config`], with another context than the current one.
pub async fn config_of(kubeconfig: Option<&Path>, context: Option<&str>) -> anyhow::Result<Config> {
    let options = KubeConfigOptions {
        context: context.map(str::to_owned),
        ..KubeConfigOptions::default()
    };
    match (kubeconfig, context) {
        (Some(path), _) => {
            let file = Kubeconfig::read_from(path);
            let file = file.with_context(|| format!("cannot read {}", path.display()))?;
            let config = Config::from_custom_kubeconfig(file, &options).await;
            config.with_context(|| format!("cannot use {}", path.display()))
        }
        (None, Some(_)) => {
            let config = Config::from_kubeconfig(&options).await;
            config.context("cannot use $KUBECONFIG or ~/.kube/config")
        }
        (None, None) => Config::infer().await.context(
            "no cluster is known: give --kubeconfig, set $KUBECONFIG, or run in a cluster's pod",
        ),
    }
}

/// A client of a cluster that can be reached so.
pub fn of(mut config: Config) -> anyhow::Result<Client> {
    // Repeating a write whose answer got lost is ours to decide: it may have been carried out.
    config.default_retry = false;
    tracing::info!("using the API at {}", config.cluster_url);
    Client::try_from(config).context("cannot make a client of the API")
}
