//! The HTTPS server: accepts connections, authenticates and authorises their requests.

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
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::auth::{self, Auth, User};
use super::handlers::Handlers;
use super::response::{HttpError, HttpResponse};
use super::route::Route;
use super::unauthenticated::{UnauthenticatedConnection, UnauthenticatedConnections};
use crate::agent::{AgentHealth, Settings};
use crate::pods::PodCache;
use crate::runtime::Runtime;

/// Each connection carries one request of the API server at a time. [`super::unauthenticated`] bounds those of unknown callers.
const CONNECTIONS_MAX: usize = 512;
const TLS_HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for a request's head to arrive.
const HEADER_READ_TIMEOUT: Duration = Duration::from_secs(30);
/// Delay after a failed accept (out of file descriptors, say), so that other connections can end.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);
/// Time for connections to end at shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);
/// TCP keep-alive detects a vanished peer after three times this long.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// What the handlers serve.
pub struct ServerContext {
    pub runtime: Arc<dyn Runtime>,
    /// The pods of the node.
    pub pod_cache: Arc<PodCache>,
    pub settings: Arc<Settings>,
    /// Authenticates and authorises callers. Without it, every request but `/healthz` is refused.
    pub client: Option<kube::Client>,
    pub health: Arc<AgentHealth>,
    /// Shown at `/metrics`, after our own.
    pub metrics: Vec<Arc<dyn Observed>>,
}

/// Serves until `stop` is cancelled. `tls` must verify client certificates; new connections use the newest.
pub async fn serve(
    listener: TcpListener,
    tls: watch::Receiver<Arc<rustls::ServerConfig>>,
    context: ServerContext,
    stop: CancellationToken,
) {
    let shared = Arc::new(Shared {
        auth: Auth::new(context.client.clone(), &context.settings.node_name),
        handlers: Handlers::new(context, stop.clone()),
        tls,
        stop: stop.clone(),
    });
    let connections = TaskTracker::new();
    let accepting = accept_all(&listener, &shared, &connections);
    stop.run_until_cancelled(accepting).await;
    drop(listener);
    connections.close();
    let ended = async {
        connections.wait().await;
        shared.handlers.streams_ended().await;
    };
    if tokio::time::timeout(SHUTDOWN_TIMEOUT, ended).await.is_err() {
        tracing::debug!("some connections did not end in time");
    }
}

struct Shared {
    auth: Auth,
    handlers: Handlers,
    tls: watch::Receiver<Arc<rustls::ServerConfig>>,
    stop: CancellationToken,
}

async fn accept_all(listener: &TcpListener, shared: &Arc<Shared>, connections: &TaskTracker) {
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let unauthenticated = Arc::new(UnauthenticatedConnections::default());
    loop {
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((socket, peer)) => {
                let Some(counted) = unauthenticated.admit(peer.ip()) else {
                    tracing::debug!(%peer, "rejecting a connection: too many from this address");
                    continue;
                };
                let shared = Arc::clone(shared);
                connections.spawn(async move {
                    serve_connection(socket, counted, shared).await;
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::debug!(%error, "cannot accept connections");
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            }
        }
    }
}

async fn serve_connection(
    socket: TcpStream,
    counted: UnauthenticatedConnection,
    shared: Arc<Shared>,
) {
    set_socket_options(&socket);
    let acceptor = TlsAcceptor::from(Arc::clone(&shared.tls.borrow()));
    let handshake = tokio::time::timeout(TLS_HANDSHAKE_TIMEOUT, acceptor.accept(socket));
    let stream = match handshake.await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "TLS handshake failed"),
        Err(_) => return tracing::debug!("TLS handshake took too long"),
    };
    let user = auth::certificate_user(stream.get_ref().1.peer_certificates());
    // Without a certificate, it counts until the connection ends.
    let _counted = user.is_none().then_some(counted);
    let service = service_fn(|request| {
        let (shared, user) = (Arc::clone(&shared), user.clone());
        async move { Ok::<_, Infallible>(handle(&shared, user.as_ref(), request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_READ_TIMEOUT)
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

/// Streams may be idle for hours, so TCP keep-alive has to detect vanished peers.
fn set_socket_options(socket: &TcpStream) {
    let result = socket.set_nodelay(true).and_then(|()| {
        sockopt::set_socket_keepalive(socket, true)?;
        sockopt::set_tcp_keepidle(socket, KEEP_ALIVE)?;
        sockopt::set_tcp_keepintvl(socket, KEEP_ALIVE / 2)?;
        Ok(sockopt::set_tcp_keepcnt(socket, 4)?)
    });
    if let Err(error) = result {
        tracing::debug!(%error, "cannot set socket options");
    }
}

async fn handle(shared: &Shared, user: Option<&User>, request: Request<Incoming>) -> HttpResponse {
    match authorized_route(shared, user, &request).await {
        Ok(route) => shared.handlers.serve(route, request).await,
        Err(error) => error.into(),
    }
}

/// The route of a request whose caller may access it.
async fn authorized_route(
    shared: &Shared,
    certificate_user: Option<&User>,
    request: &Request<Incoming>,
) -> Result<Route, HttpError> {
    let route = Route::parse(request.uri().path());
    let route = route.ok_or_else(|| HttpError::not_found("404 page not found"));
    // Unknown paths require access, too, so that callers without any cannot probe for routes.
    let required = match &route {
        Ok(route) => route.required_access(request.method()),
        Err(_) => Route::Pods.required_access(request.method()),
    };
    if let Some(required) = required {
        let headers = request.headers();
        let user = shared.auth.authenticate(certificate_user, headers).await?;
        shared.auth.authorize(&user, &required).await?;
    }
    let route = route?;
    if !route.accepts(request.method()) {
        let status = http::StatusCode::METHOD_NOT_ALLOWED;
        return Err(HttpError::new(status, "405: Method Not Allowed"));
    }
    Ok(route)
}
