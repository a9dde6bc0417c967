//! `kennel dns`: a DNS server for the services of any Kubernetes cluster.

use std::net::SocketAddr;

use anyhow::Context as _;
use kennel_dns::{Server, Settings};
use tokio_util::sync::CancellationToken;

use crate::args::{DnsArgs, DnsZoneArgs};
use crate::cluster;
use crate::signals::run_until_signal;

/// Runs until SIGINT or SIGTERM.
pub(crate) async fn run(args: DnsArgs) -> anyhow::Result<()> {
    run_until_signal(|stop| work(args, stop)).await
}

async fn work(args: DnsArgs, stop: CancellationToken) -> anyhow::Result<()> {
    let server = bind(args.dns_listen, args.dns).await?;
    let client = cluster::client(args.kubeconfig.as_deref()).await?;
    Ok(server.run(client, stop).await?)
}

pub(crate) async fn bind(listen: SocketAddr, zone: DnsZoneArgs) -> anyhow::Result<Server> {
    let upstreams = if zone.dns_upstream.is_empty() {
        kennel_dns::system_resolvers()
    } else {
        zone.dns_upstream
    };
    let settings = Settings {
        listen,
        domain: zone.cluster_domain,
        upstreams,
    };
    Server::bind(settings)
        .await
        .context("cannot start the DNS server")
}
