//! The dashboard of the cluster in this process: a loopback address, and a client with a role of its own.

use std::convert::Infallible;

use kennel_dashboard::{Dashboard, Listen, Settings, StartError};
use kennel_server::server::Server;
use tokio::sync::watch;

use crate::clients;
use crate::supervisor::Supervisor;

/// Starts it. Returns the address that a browser can open: another one each time that one was used.
pub async fn start(
    supervisor: &mut Supervisor,
    server: &Server,
    allow_changes: bool,
) -> Result<watch::Receiver<String>, StartError> {
    let dashboard = Dashboard::bind(Settings {
        client: clients::dashboard(&server.api),
        listen: Listen::Loopback,
        tls: None,
        allow_changes,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        server: server.url(),
        context: None,
    });
    let dashboard = dashboard.await?;
    let address = dashboard.address();
    supervisor.start("dashboard", move |_, stop| {
        let dashboard = dashboard.clone();
        async move {
            dashboard.serve(stop).await;
            Ok::<_, Infallible>(())
        }
    });
    Ok(address)
}
