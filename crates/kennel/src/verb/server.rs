//! `kennel server`: the API alone.

use kennel_server::server::{Config, Server};
use tokio::signal::unix::{SignalKind, signal};

use crate::args::ServerArgs;

/// Serves until told to stop.
pub(crate) async fn run(args: ServerArgs) -> anyhow::Result<()> {
    let server = start(args).await?;
    stopped().await?;
    tracing::info!("stopping");
    server.stop().await;
    Ok(())
}

/// Starts a server and says how to reach it.
pub(super) async fn start(args: ServerArgs) -> anyhow::Result<Server> {
    let server = Server::start(Config {
        data_dir: args.data_dir,
        listen: args.listen,
        tls_san: args.tls_san,
        service_cidr: args.service_cidr,
    })
    .await?;
    announce(&server);
    Ok(server)
}

#[expect(
    clippy::print_stdout,
    reason = "the three lines this verb exists to print"
)]
fn announce(server: &Server) {
    let kubeconfig = server.kubeconfig.display();
    println!("Kennel serves the Kubernetes API at {}", server.url());
    println!("Use it:  export KUBECONFIG={kubeconfig}");
    println!("Try it:  kubectl get namespaces");
}

/// Waits for SIGTERM or Ctrl-C.
pub(super) async fn stopped() -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}
