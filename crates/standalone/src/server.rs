//! Starts the API server and tells the user how to reach it.

use std::io::Write as _;
use std::net::IpAddr;
use std::sync::Arc;

use kennel_agent::{descriptors, notify};
use kennel_node::agent::machine;
use kennel_server::server::{Config, Server, StartError};

/// Starts a server with as many file descriptors as the machine allows. A server that listens on all
/// addresses also gets this machine's address into its certificate, since other machines will connect to it.
pub async fn start(mut config: Config) -> Result<Server, StartError> {
    descriptors::raise_limit();
    if config.listen.ip().is_unspecified() {
        config.tls_san.push(machine::address(None).to_string());
    }
    Server::start(config).await
}

/// The address at which pods and other machines reach a server that listens here: this one, or that of the default route if it
/// is a loopback address or all addresses. On a machine without a network it is a loopback address after all.
pub fn own_address(listen: IpAddr) -> IpAddr {
    if listen.is_loopback() || listen.is_unspecified() {
        machine::address(None)
    } else {
        listen
    }
}

/// Notifies the service manager and its watchdog, and prints three lines on how to reach the server. A closed stdout
/// (`kennel server | head -n 1`) is not an error.
pub fn announce(server: &Server, first_command: &str) {
    let (url, kubeconfig) = (server.url(), server.kubeconfig.display());
    let text = format!(
        "Kennel serves the Kubernetes API at {url}\n\
         Use it:  export KUBECONFIG={kubeconfig}\n\
         Try it:  {first_command}\n"
    );
    let mut stdout = std::io::stdout().lock();
    let _closed = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
    notify::ready(&format!("Serving the Kubernetes API at {url}"));
    let api = Arc::clone(&server.api);
    notify::watchdog(move || api.is_live());
}
