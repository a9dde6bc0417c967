//! `kennel server`: the API alone.

use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use kennel_node::agent::machine;
use kennel_server::audit::{Options as AuditOptions, Target};
use kennel_server::http::limits::Patience;
use kennel_server::server::{Config, Server};

use crate::args::{AuditArgs, ServerArgs};
use crate::notify;
use crate::signals::Signals;

/// Serves until told to stop.
pub(crate) async fn run(args: ServerArgs) -> anyhow::Result<()> {
    // Heard from the start: whoever reads that we serve may tell us to stop in the same moment.
    let mut signals = Signals::listen()?;
    let server = tokio::select! {
        server = start(args) => server?,
        () = signals.stop() => return Ok(()),
    };
    announce(&server, "kubectl get namespaces");
    signals.stop().await;
    tracing::info!("stopping");
    server.stop().await;
    Ok(())
}

/// Starts a server.
pub(crate) async fn start(args: ServerArgs) -> anyhow::Result<Server> {
    crate::descriptors::raise_limit();
    let patience = args.patience_seconds.map(Duration::from_secs);
    let mut tls_san = args.tls_san;
    if args.listen.ip().is_unspecified() {
        // Whoever serves on all addresses means to be reached from other machines.
        tls_san.push(machine::address(None).to_string());
    }
    let server = Server::start(Config {
        audit: audit(&args.audit, &args.data_dir),
        encryption_key_file: args.encryption_key_file,
        data_dir: args.data_dir,
        listen: args.listen,
        tls_san,
        service_cidr: args.service_cidr,
        token_file: args.token_file,
        token_key_days: args.token_key_days,
        event_ttl: Duration::from_secs(args.event_ttl),
        patience: patience.map_or_else(Patience::default, Patience::at_most),
    })
    .await?;
    Ok(server)
}

fn audit(args: &AuditArgs, data_dir: &Path) -> AuditOptions {
    AuditOptions {
        target: Target::of(args.place.as_deref(), data_dir),
        max_size: args.max_size,
        max_files: args.max_files,
        skip_heartbeats: args.skip_heartbeats,
    }
}

/// Says that it serves: to a service manager, and to people how to reach it, in three lines. A reader who leaves after the first one
/// (`kennel server | head -n 1`) is no reason to end.
pub(crate) fn announce(server: &Server, first_command: &str) {
    let (url, kubeconfig) = (server.url(), server.kubeconfig.display());
    let words = format!(
        "Kennel serves the Kubernetes API at {url}\n\
         Use it:  export KUBECONFIG={kubeconfig}\n\
         Try it:  {first_command}\n"
    );
    let mut out = std::io::stdout().lock();
    let _unheard = out.write_all(words.as_bytes()).and_then(|()| out.flush());
    notify::ready(&format!("Serving the Kubernetes API at {url}"));
}
