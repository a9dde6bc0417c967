//! `kennel server`: the API server alone.

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use kennel_agent::new_files::NewFiles;
use kennel_agent::node::absolute;
use kennel_network::overlap;
use kennel_server::api::Exemptions;
use kennel_server::audit::{Options as AuditOptions, Target};
use kennel_server::limits::Timeouts;
use kennel_server::server::{Advertised, Config, LOCK_FILE};
use kennel_standalone::supervisor::Supervisor;
use kennel_standalone::{clients, server};

use super::dns;
use crate::args::{AuditArgs, ServerArgs};
use crate::dns_args::Advertise;
use crate::signals::Signals;

/// How long components may take to stop. The API server stops after them.
pub(super) const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// Serves until SIGINT or SIGTERM.
pub(crate) async fn run(args: ServerArgs) -> anyhow::Result<()> {
    // Before the start: a client that reads our announcement may send a signal at once.
    let mut signals = Signals::listen()?;
    let new = new_files(&args);
    warn_of_service_range(&args).await;
    let dns_server = bind_dns(&args).await?;
    let mut server = tokio::select! {
        server = server::start(config(args, dns_server.as_ref())) => new.remove_if_failed(server)?,
        () = signals.received() => return Ok(()),
    };
    server::announce(&server, "kubectl get namespaces");
    let mut supervisor = Supervisor::new(clients::informers(&server.api));
    if let Some(dns_server) = dns_server {
        dns::start(dns_server, &mut supervisor, &server.api);
    }
    let running = supervisor.run();
    tokio::select! {
        () = signals.received() => {}
        failure = server.failed() => return Err(failure.into()),
    }
    tracing::info!("stopping");
    running.stop(STOP_TIMEOUT).await;
    server.stop().await;
    Ok(())
}

/// Agents decide whether a machine can route services: this one may be none of theirs.
pub(super) async fn warn_of_service_range(args: &ServerArgs) {
    let compared = overlap::of_services(args.service_cidr.block()).await;
    if let Err(error @ kennel_network::Error::ServicesOverlap { .. }) = compared {
        tracing::warn!("no agent on this machine can route services: {error}");
    }
}

/// Binds the DNS server of this process, whose port the Service `kube-dns` names.
pub(super) async fn bind_dns(args: &ServerArgs) -> anyhow::Result<Option<kennel_dns::Server>> {
    let own = match args.advertise_address {
        Some(Advertise::Address(address)) => address,
        _ => server::own_address(args.listen.ip()),
    };
    dns::bind_in_server(&args.dns, own).await
}

/// The address of the Service `kubernetes`; none on a machine without a network.
fn advertised(args: &ServerArgs) -> Option<IpAddr> {
    match args.advertise_address {
        Some(Advertise::Off) => None,
        Some(Advertise::Address(address)) => Some(address),
        None => Some(server::own_address(args.listen.ip())).filter(|ip| !ip.is_loopback()),
    }
}

/// Removes the files of a start that fails.
pub(super) fn new_files(args: &ServerArgs) -> NewFiles {
    NewFiles::record(&absolute(&args.data_dir), LOCK_FILE)
}

/// With absolute paths: users copy them to other terminals.
pub(super) fn config(args: ServerArgs, dns_server: Option<&kennel_dns::Server>) -> Config {
    let advertised = Advertised {
        address: advertised(&args),
        dns: dns_server.map(kennel_dns::Server::address),
    };
    let mut tls_san = args.tls_san;
    tls_san.extend(advertised.address.map(|ip| ip.to_string()));
    tls_san.push(format!(
        "kubernetes.default.svc.{}",
        args.dns.zone.cluster_domain
    ));
    let client_timeout = args.client_timeout.map(Duration::from_secs);
    let data_dir = absolute(&args.data_dir);
    Config {
        audit: audit(&args.audit, &data_dir),
        store: args.store.etcd(),
        encryption_key_file: args.encryption_key_file,
        clock: kennel_server::pki::Clock::default(),
        data_dir,
        listen: args.listen,
        advertised,
        tls_san,
        service_cidr: args.service_cidr,
        token_file: args.token_file,
        token_key_days: args.token_key_days,
        event_ttl: Duration::from_secs(args.event_ttl),
        storage_quota: args.storage_quota,
        backups: args.backups.schedule(),
        pod_security: Exemptions {
            namespaces: args.pod_security.namespaces,
            users: args.pod_security.users,
            runtime_classes: args.pod_security.runtime_classes,
        },
        timeouts: client_timeout.map_or_else(Timeouts::default, Timeouts::at_most),
    }
}

fn audit(args: &AuditArgs, data_dir: &Path) -> AuditOptions {
    AuditOptions {
        target: Target::of(args.path.as_deref(), data_dir),
        max_size: args.max_size,
        max_files: args.max_files,
        skip_heartbeats: args.skip_heartbeats,
    }
}
