//! `kennel server`: the API server alone.

use std::path::Path;
use std::time::Duration;

use kennel_agent::new_files::NewFiles;
use kennel_agent::node::absolute;
use kennel_server::api::Exemptions;
use kennel_server::audit::{Options as AuditOptions, Target};
use kennel_server::limits::Timeouts;
use kennel_server::server::{Config, LOCK_FILE};
use kennel_standalone::server;

use crate::args::{AuditArgs, ServerArgs};
use crate::signals::Signals;

/// Serves until SIGINT or SIGTERM.
pub(crate) async fn run(args: ServerArgs) -> anyhow::Result<()> {
    // Before the start: a client that reads our announcement may send a signal at once.
    let mut signals = Signals::listen()?;
    let new = new_files(&args);
    let mut server = tokio::select! {
        server = server::start(config(args)) => new.remove_if_failed(server)?,
        () = signals.received() => return Ok(()),
    };
    server::announce(&server, "kubectl get namespaces");
    tokio::select! {
        () = signals.received() => {}
        failure = server.failed() => return Err(failure.into()),
    }
    tracing::info!("stopping");
    server.stop().await;
    Ok(())
}

/// Removes the files of a start that fails.
pub(super) fn new_files(args: &ServerArgs) -> NewFiles {
    NewFiles::record(&absolute(&args.data_dir), LOCK_FILE)
}

/// With absolute paths: users copy them to other terminals.
pub(super) fn config(args: ServerArgs) -> Config {
    let client_timeout = args.client_timeout.map(Duration::from_secs);
    let data_dir = absolute(&args.data_dir);
    Config {
        audit: audit(&args.audit, &data_dir),
        encryption_key_file: args.encryption_key_file,
        clock: kennel_server::pki::Clock::default(),
        data_dir,
        listen: args.listen,
        tls_san: args.tls_san,
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
