//! `kennel dns`: the names of a cluster, from any Kubernetes API.

use std::net::SocketAddr;

use anyhow::Context as _;
use kennel_dns::{Server, Settings};
use tokio_util::sync::CancellationToken;

use crate::args::{DnsArgs, NamesArgs};
use crate::cluster;
use crate::signals::until_told;

/// Answers until told to stop.
pub(crate) async fn run(args: DnsArgs) -> anyhow::Result<()> {
    until_told(|stop| work(args, stop)).await
}

async fn work(args: DnsArgs, stop: CancellationToken) -> anyhow::Result<()> {
    let server = bind(args.dns_listen, args.names).await?;
    let client = cluster::client(args.kubeconfig.as_deref()).await?;
    Ok(server.run(client, stop).await?)
}

/// Begins to listen.
pub(crate) async fn bind(listen: SocketAddr, names: NamesArgs) -> anyhow::Result<Server> {
    let upstreams = if names.dns_upstream.is_empty() {
        kennel_dns::of_this_machine()
    } else {
        names.dns_upstream
    };
    let settings = Settings {
        listen,
        domain: names.cluster_domain,
        upstreams,
    };
    Server::bind(settings)
        .await
        .context("names cannot be served")
}
