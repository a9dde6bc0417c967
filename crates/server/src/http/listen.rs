//! The listening socket and its connections.

use std::sync::Arc;
use std::time::Duration;

use hyper_util::server::graceful::GracefulShutdown;
use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::{connection, limits};
use crate::api::Api;

/// After a failed accept (out of file descriptors, say), others get a moment to end.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until told to stop; then ends watches, lets requests finish, and returns.
pub async fn serve(
    listener: TcpListener,
    tls: Arc<ServerConfig>,
    api: Arc<Api>,
    stop: CancellationToken,
) {
    let tls = TlsAcceptor::from(tls);
    let graceful = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(limits::CONNECTIONS_MAX));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            break;
        };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        match accepted {
            Ok((socket, _)) => {
                let (tls, api) = (tls.clone(), Arc::clone(&api));
                let watcher = graceful.watcher();
                tokio::spawn(async move {
                    connection::serve(socket, tls, api, watcher).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    api.end_watches();
    if tokio::time::timeout(limits::SHUTDOWN, graceful.shutdown())
        .await
        .is_err()
    {
        tracing::warn!("some connections did not end in time");
    }
}
