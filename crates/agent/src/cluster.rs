//! Clients of remote clusters, for commands that work against any Kubernetes API.

use std::path::Path;

use anyhow::Context as _;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

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
            "no cluster is configured: give --kubeconfig, set $KUBECONFIG, or run in a cluster's pod",
        ),
    }
}

pub fn client_of(mut config: Config) -> anyhow::Result<Client> {
    // Callers decide whether to repeat a write whose response was lost: it may have been executed.
    config.default_retry = false;
    config.headers.extend(kennel_client::headers());
    tracing::info!("using the API at {}", config.cluster_url);
    Client::try_from(config).context("cannot make a client of the API")
}
