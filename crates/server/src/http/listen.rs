//! The listener: accepts connections until the server stops, then drains them.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connection::{self, Shared};
use crate::api::Api;
use crate::health::Accepting;
use crate::limits::{self, Timeouts};
use crate::tls::Tls;

/// The pause after a failed accept, in which other connections may end and free file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How often a failed accept is logged at most, so that the log does not fill the disk.
const LOG_INTERVAL: Duration = Duration::from_mins(1);

/// The accept loop completes an iteration at least this often, for its health check.
const TURN: Duration = Duration::from_secs(5);

/// A connection, and its place among those that may be open.
type Accepted = (OwnedSemaphorePermit, (TcpStream, SocketAddr));

/// Which clients a listener accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clients {
    All,
    /// This machine, and the pods of nodes.
    OfThisMachine,
}

/// Serves until `stop`; then ends watches, waits for requests to finish, and returns.
pub(crate) async fn serve(
    (listener, clients): (TcpListener, Clients),
    tls: Tls,
    api: Arc<Api>,
    timeouts: Timeouts,
    accepting: Arc<Accepting>,
    stop: CancellationToken,
) {
    let shared = Shared {
        api: Arc::clone(&api),
        tls,
        timeouts,
        stop: stop.clone(),
    };
    let connections = TaskTracker::new();
    tokio::select! {
        () = accept_all((&listener, clients), &shared, &connections, &accepting) => {}
        () = stop.cancelled() => {}
    }
    drop(listener);
    api.end_watches();
    connections.close();
    let ended = tokio::time::timeout(timeouts.shutdown, connections.wait());
    if ended.await.is_err() {
        tracing::warn!("connections were still open at the end of the shutdown timeout");
    }
}

/// Returns if the socket is broken.
async fn accept_all(
    (listener, clients): (&TcpListener, Clients),
    shared: &Shared,
    connections: &TaskTracker,
    accepting: &Accepting,
) {
    let permits = Arc::new(Semaphore::new(limits::CONNECTIONS_MAX));
    let mut logged: Option<Instant> = None;
    loop {
        accepting.completed_iteration();
        let Some(accepted) = accept_in_turn(listener, &permits, accepting).await else {
            continue;
        };
        match accepted {
            Ok((permit, (socket, address))) => {
                accepting.accepted();
                let shared = shared.clone();
                connections.spawn(async move {
                    if clients == Clients::All || is_of_this_machine(&shared.api, &socket, address)
                    {
                        connection::serve(socket, address, shared).await;
                    }
                    drop(permit);
                });
            }
            Err(error) if is_broken(&error) => {
                tracing::error!(%error, "the listening socket is broken");
                return;
            }
            Err(error) => {
                accepting.failed(&error);
                if logged.is_none_or(|at| at.elapsed() >= LOG_INTERVAL) {
                    tracing::warn!(%error, "cannot accept connections");
                    logged = Some(Instant::now());
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Whether a client is on this machine, or in a pod.
fn is_of_this_machine(api: &Api, socket: &TcpStream, client: SocketAddr) -> bool {
    let own = socket.local_addr().is_ok_and(|own| own.ip() == client.ip());
    let admitted = own || client.ip().is_loopback() || api.is_pod_address(client.ip());
    if !admitted {
        tracing::debug!(%client, "rejecting a connection: it is not from this machine");
    }
    admitted
}

/// Whether this socket will never accept a connection again. Other errors pass: a lack of file descriptors or memory, a
/// client that has left.
fn is_broken(error: &io::Error) -> bool {
    let broken = [Errno::INVAL, Errno::BADF, Errno::NOTSOCK];
    Errno::from_io_error(error).is_some_and(|errno| broken.contains(&errno))
}

/// Tries to accept a connection for one turn.
async fn accept_in_turn(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
    accepting: &Accepting,
) -> Option<io::Result<Accepted>> {
    let accepted = tokio::time::timeout(TURN, accept(listener, permits)).await;
    if accepted.is_err() && permits.available_permits() == 0 {
        accepting.is_full();
    }
    accepted.ok()
}

/// Accepts a connection, once fewer than the maximum are open.
async fn accept(listener: &TcpListener, permits: &Arc<Semaphore>) -> io::Result<Accepted> {
    let permit = Arc::clone(permits).acquire_owned().await;
    let permit = permit.map_err(io::Error::other)?;
    Ok((permit, listener.accept().await?))
}

#[cfg(test)]
mod tests {
    use kennel_core::health::Endpoint;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_listener_whose_connections_are_all_taken_is_not_ready() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let permits = Arc::new(Semaphore::new(1));
        let accepting = Accepting::new("listener");
        let failure = |endpoint| {
            let later = Instant::now() + 8 * TURN;
            accepting.completed_iteration_at(later);
            accepting.outcome(endpoint, later).result.err()
        };
        // Nobody connects.
        let turn = || accept_in_turn(&listener, &permits, &accepting);
        assert!(turn().await.is_none());
        assert!(failure(Endpoint::Readyz).is_none());

        let taken = Arc::clone(&permits).acquire_owned().await.unwrap();
        assert!(turn().await.is_none());
        let reason = failure(Endpoint::Readyz).unwrap();
        assert!(reason.0.contains("connections to end"), "{reason:?}");
        assert!(failure(Endpoint::Livez).is_none(), "no reason to restart");

        drop(taken);
        let address = listener.local_addr().unwrap();
        let _client = std::net::TcpStream::connect(address).unwrap();
        assert!(turn().await.is_some_and(|accepted| accepted.is_ok()));
        accepting.accepted();
        assert!(failure(Endpoint::Readyz).is_none());
    }
}
