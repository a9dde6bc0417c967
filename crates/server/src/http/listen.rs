//! The listening socket and its connections.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connection::{self, Shared};
use super::limits::{self, Patience};
use super::tls::Tls;
use crate::api::Api;

/// After a failed accept (out of file descriptors, say), others get a moment to end.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How often that is logged: a log that fills the disk would be the next thing to fail.
const COMPLAIN_EVERY: Duration = Duration::from_mins(1);

/// Serves until told to stop; then ends watches, lets requests finish, and returns.
pub async fn serve(
    listener: TcpListener,
    tls: Tls,
    api: Arc<Api>,
    patience: Patience,
    stop: CancellationToken,
) {
    let shared = Shared {
        api: Arc::clone(&api),
        tls,
        patience,
        stop: stop.clone(),
    };
    let connections = TaskTracker::new();
    // Waiting for a place, for a client or for better times: told to stop, none of them goes on.
    tokio::select! {
        () = accept_all(&listener, &shared, &connections) => {}
        () = stop.cancelled() => {}
    }
    drop(listener);
    api.end_watches();
    connections.close();
    let ended = tokio::time::timeout(patience.shutdown, connections.wait());
    if ended.await.is_err() {
        tracing::warn!("some connections did not end in time");
    }
}

async fn accept_all(listener: &TcpListener, shared: &Shared, connections: &TaskTracker) {
    let places = Arc::new(Semaphore::new(limits::CONNECTIONS_MAX));
    let mut complained: Option<Instant> = None;
    loop {
        match accept(listener, &places).await {
            Ok((place, (socket, address))) => {
                let connection = connection::serve(socket, address, shared.clone());
                connections.spawn(async move {
                    connection.await;
                    drop(place);
                });
            }
            Err(error) => {
                if complained.is_none_or(|at| at.elapsed() >= COMPLAIN_EVERY) {
                    tracing::warn!(%error, "cannot accept connections");
                    complained = Some(Instant::now());
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// The next client, once there is a place for it.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> io::Result<(OwnedSemaphorePermit, (TcpStream, SocketAddr))> {
    let place = Arc::clone(places).acquire_owned().await;
    let place = place.map_err(io::Error::other)?;
    Ok((place, listener.accept().await?))
}
