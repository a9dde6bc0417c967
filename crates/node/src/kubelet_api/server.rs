//! The listening socket, its connections, and their requests.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use kennel_client::metrics::Observed;
use rustix::net::sockopt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::answer::{Answer, Refusal};
use super::desk::Desk;
use super::gate::{self, Gate, User};
use super::route::Route;
use crate::agent::Settings;
use crate::pods::PodCache;
use crate::runtime::Runtime;

/// How many connections there may be: each is one request of the API server at a time.
const CONNECTIONS_MAX: usize = 512;
/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long a request may take to arrive.
const HEADERS: Duration = Duration::from_secs(30);
/// After a failed accept (out of file descriptors, say), others get a moment to end.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long connections get to end when told to stop.
const SHUTDOWN: Duration = Duration::from_secs(3);
/// A peer that is gone without a word is noticed after this long, and twice as much again.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// What there is to look at.
pub struct Rooms {
    /// What runs the pods.
    pub runtime: Arc<dyn Runtime>,
    /// The pods.
    pub directory: Arc<PodCache>,
    /// How the node is run.
    pub settings: Arc<Settings>,
    /// Whom to ask who somebody is and what they may. Without, nobody may look in.
    pub client: Option<kube::Client>,
    /// Whose numbers are shown at `/metrics`, beside our own.
    pub metrics: Vec<Arc<dyn Observed>>,
}

/// Serves until told to stop. `tls` verifies the certificates that clients show, and may change its own as it
/// likes (a resolver of certificates).
pub async fn serve(
    listener: TcpListener,
    tls: Arc<rustls::ServerConfig>,
    rooms: Rooms,
    stop: CancellationToken,
) {
    let shared = Arc::new(Shared {
        gate: Gate::new(rooms.client.clone(), &rooms.settings.node_name),
        desk: Desk::new(rooms, stop.clone()),
        tls: TlsAcceptor::from(tls),
        stop: stop.clone(),
    });
    let connections = TaskTracker::new();
    tokio::select! {
        () = accept_all(&listener, &shared, &connections) => {}
        () = stop.cancelled() => {}
    }
    drop(listener);
    connections.close();
    let ended = async {
        connections.wait().await;
        shared.desk.ended().await;
    };
    if tokio::time::timeout(SHUTDOWN, ended).await.is_err() {
        tracing::debug!("some connections did not end in time");
    }
}

struct Shared {
    gate: Gate,
    desk: Desk,
    tls: TlsAcceptor,
    stop: CancellationToken,
}

async fn accept_all(listener: &TcpListener, shared: &Arc<Shared>, connections: &TaskTracker) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((socket, _)) => {
                let shared = Arc::clone(shared);
                connections.spawn(async move {
                    converse(socket, shared).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::debug!(%error, "cannot accept connections");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Answers what is asked over one connection.
async fn converse(socket: TcpStream, shared: Arc<Shared>) {
    prepare(&socket);
    let handshake = tokio::time::timeout(HANDSHAKE, shared.tls.accept(socket));
    let stream = match handshake.await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "TLS handshake failed"),
        Err(_) => return tracing::debug!("TLS handshake took too long"),
    };
    let user = gate::certified(stream.get_ref().1.peer_certificates());
    let service = service_fn(|request| {
        let (shared, user) = (Arc::clone(&shared), user.clone());
        async move { Ok::<_, Infallible>(answer(&shared, user.as_ref(), request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = shared.stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended");
    }
}

/// Streams may be silent for hours: the machine itself makes sure that the other side is still there.
fn prepare(socket: &TcpStream) {
    let prepared = socket.set_nodelay(true).and_then(|()| {
        sockopt::set_socket_keepalive(socket, true)?;
        sockopt::set_tcp_keepidle(socket, KEEP_ALIVE)?;
        sockopt::set_tcp_keepintvl(socket, KEEP_ALIVE / 2)?;
        Ok(sockopt::set_tcp_keepcnt(socket, 4)?)
    });
    if let Err(error) = prepared {
        tracing::debug!(%error, "cannot prepare a connection");
    }
}

async fn answer(shared: &Shared, user: Option<&User>, request: Request<Incoming>) -> Answer {
    match admit(shared, user, &request).await {
        Ok(route) => shared.desk.serve(route, request).await,
        Err(refusal) => refusal.into(),
    }
}

/// What is asked for, if whoever asks may ask it.
async fn admit(
    shared: &Shared,
    certified: Option<&User>,
    request: &Request<Incoming>,
) -> Result<Route, Refusal> {
    let route = Route::parse(request.uri().path());
    let known = route.ok_or_else(|| Refusal::not_found("404 page not found"));
    // What there is is told to nobody who may not know it.
    let need = match &known {
        Ok(route) => route.need(request.method()),
        Err(_) => Route::Pods.need(request.method()),
    };
    if let Some(need) = need {
        let user = shared.gate.identify(certified, request.headers()).await?;
        shared.gate.admit(&user, &need).await?;
    }
    let route = known?;
    if !route.takes(request.method()) {
        let status = http::StatusCode::METHOD_NOT_ALLOWED;
        return Err(Refusal::new(status, "405: Method Not Allowed"));
    }
    Ok(route)
}
