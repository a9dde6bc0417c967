//! `kennel dns`: a DNS server for the services of any Kubernetes cluster; and the one of `kennel server` and `kennel up`.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use anyhow::Context as _;
use kennel_agent::kubeconfig_certificate::KubeconfigCertificate;
use kennel_dns::{Server, Settings};
use kennel_server::api::Api;
use kennel_standalone::clients;
use kennel_standalone::supervisor::Supervisor;
use tokio_util::sync::CancellationToken;

use crate::cluster;
use crate::dns_args::{DnsArgs, DnsListen, DnsZoneArgs, ServerDnsArgs};
use crate::signals::run_until_signal;

/// The usual port of the DNS server in a server's process. Port 53 may be the machine's own resolver's.
const SERVER_PORT: u16 = 10053;

/// Runs until SIGINT or SIGTERM.
pub(crate) async fn run(args: DnsArgs) -> anyhow::Result<()> {
    run_until_signal(|stop| work(args, stop)).await
}

async fn work(args: DnsArgs, stop: CancellationToken) -> anyhow::Result<()> {
    let server = bind(args.dns_listen, &args.zone).await?;
    let config = cluster::config(args.kubeconfig.as_deref()).await?;
    let certificate = KubeconfigCertificate::of(&config);
    tokio::spawn(
        stop.clone()
            .run_until_cancelled_owned(certificate.warn(drop)),
    );
    let client = cluster::client_of(config)?;
    Ok(server.run(client, stop).await?)
}

/// Binds the DNS server of a server, unless it is switched off. `address` is where pods reach this machine.
pub(super) async fn bind_in_server(
    args: &ServerDnsArgs,
    address: IpAddr,
) -> anyhow::Result<Option<Server>> {
    match args.dns_listen {
        Some(DnsListen::Off) => Ok(None),
        Some(DnsListen::Address(listen)) => bind(listen, &args.zone).await.map(Some),
        None => bind_at(address, &args.zone).await,
    }
}

/// Binds the usual port or, since the Service names the port, any other. Without a usable address there are no names, which the
/// server can do without.
async fn bind_at(address: IpAddr, zone: &DnsZoneArgs) -> anyhow::Result<Option<Server>> {
    // Another cluster on this machine may have the usual one.
    match bind(SocketAddr::new(address, SERVER_PORT), zone).await {
        Ok(server) => return Ok(Some(server)),
        Err(error) if is_about_listening(&error) => tracing::info!("{error:#}; using a free port"),
        Err(error) => return Err(error),
    }
    match bind(SocketAddr::new(address, 0), zone).await {
        Err(error) if is_about_listening(&error) => {
            tracing::warn!("{error:#}; serving no names");
            Ok(None)
        }
        bound => bound.map(Some),
    }
}

fn is_about_listening(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<kennel_dns::Error>();
    matches!(error, Some(kennel_dns::Error::Listen { .. }))
}

/// Runs the DNS server in the server's process.
pub(super) fn start(server: Server, supervisor: &mut Supervisor, api: &Arc<Api>) {
    let client = clients::dns(api);
    supervisor.start("DNS server", move |_, stop| {
        server.clone().run(client.clone(), stop)
    });
}

async fn bind(listen: SocketAddr, zone: &DnsZoneArgs) -> anyhow::Result<Server> {
    let upstreams = if zone.dns_upstream.is_empty() {
        kennel_dns::system_resolvers()
    } else {
        zone.dns_upstream.clone()
    };
    let settings = Settings {
        listen,
        domain: zone.cluster_domain.clone(),
        upstreams,
        recursion_for: zone.dns_recursion_for.clone(),
    };
    let server = Server::bind(settings).await;
    server.context("cannot start the DNS server")
}
