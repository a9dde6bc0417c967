//! One TCP connection: TLS handshake, HTTP/1.1 or HTTP/2, timeouts, graceful shutdown.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::FutureExt as _;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::activity::{Activity, Idleness};
use super::stream::TimedStream;
use super::{protocol, service};
use crate::api::Api;
use crate::limits::Timeouts;
use crate::request::Caller;
use crate::tcp;
use crate::tls::Tls;
use crate::upgrade::Upgrade;

/// The connection preface that every HTTP/2 client sends first.
const HTTP2_PREFACE_BYTES: usize = 24;

/// What all connections share.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) api: Arc<Api>,
    pub(super) tls: Tls,
    pub(super) timeouts: Timeouts,
    pub(super) stop: CancellationToken,
}

/// Serves one connection until it ends.
pub(super) async fn serve(socket: TcpStream, address: SocketAddr, shared: Shared) {
    let Some(_seat) = shared.api.fairness.connection(address.ip()).await else {
        tracing::debug!(%address, "rejecting a connection: too many from this address");
        return;
    };
    // Most answers are small: waiting to fill a packet would only delay them.
    if let Err(error) = socket.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
    tcp::enable_keepalive(&socket);
    // Boxed, so that it takes no memory afterwards: the space of all that a task awaits one after the other is its own as long
    // as it runs.
    let Some(stream) = handshake(socket, address, &shared).boxed().await else {
        return;
    };
    let session = stream.get_ref().1;
    let caller = Caller::remote(address, shared.tls.verify(session.peer_certificates()));
    let is_http2 = session.alpn_protocol() == Some(b"h2");
    let sessions = TaskTracker::new();
    serve_http(stream, is_http2, caller, shared, &sessions).await;
    sessions.close();
    // A connection that was upgraded keeps its seat until its session ends.
    sessions.wait().await;
}

/// Serves requests until the connection ends or the server stops.
async fn serve_http(
    stream: Box<TlsStream<TcpStream>>,
    is_http2: bool,
    caller: Caller,
    shared: Shared,
    sessions: &TaskTracker,
) {
    let (timeouts, stop) = (shared.timeouts, shared.stop.clone());
    let opening = if is_http2 { HTTP2_PREFACE_BYTES } else { 0 };
    let stream = TimedStream::new(stream, opening, timeouts.headers, timeouts.stall);
    let may_stall = stream.may_stall();
    let had_request = AtomicBool::new(false);
    let activity = is_http2.then(Activity::new);
    let service = service_fn(|mut request| {
        had_request.store(true, Ordering::Relaxed);
        let upgrade = Upgrade::of(&mut request, &may_stall, sessions);
        let (shared, caller) = (shared.clone(), caller.clone());
        let exchange = activity.as_ref().map(Activity::begin);
        async move {
            let Shared { api, timeouts, .. } = &shared;
            let answer = service::answer_within(api, request, caller, *timeouts, upgrade, exchange);
            Ok::<_, Infallible>(answer.await)
        }
        // hyper keeps room for this future as long as a connection (HTTP/1.1) or an answer (HTTP/2) lasts, also of an idle
        // watch, so only a pointer is kept.
        .boxed()
    });
    let (stream, stop) = (TokioIo::new(stream), stop.cancelled());
    // When the server stops, a connection without a request is closed at once.
    let stop = stop.map(|()| !had_request.load(Ordering::Relaxed));
    if let Some(activity) = &activity {
        let connection = pin!(protocol::http2().serve_connection(stream, service));
        let end = async {
            tokio::select! {
                why = activity.idle(timeouts) => why == Idleness::Stalled,
                at_once = stop => at_once,
            }
        };
        serve_until(
            connection,
            http2::Connection::graceful_shutdown,
            end,
            timeouts,
        )
        .await;
    } else {
        let connection = protocol::http1(timeouts).serve_connection(stream, service);
        let connection = pin!(connection.with_upgrades());
        serve_until(
            connection,
            http1::UpgradeableConnection::graceful_shutdown,
            stop,
            timeouts,
        )
        .await;
    }
}

/// Serves a connection until it ends or `end` resolves: with `false` the connection is shut down gracefully,
/// with `true` it is closed at once.
async fn serve_until<C>(
    mut connection: Pin<&mut C>,
    finish: impl FnOnce(Pin<&mut C>),
    end: impl Future<Output = bool>,
    timeouts: Timeouts,
) where
    C: Future<Output = hyper::Result<()>>,
{
    let at_once = tokio::select! {
        ended = connection.as_mut() => return log_end(ended),
        at_once = end => at_once,
    };
    if at_once {
        return;
    }
    finish(connection.as_mut());
    if let Ok(ended) = tokio::time::timeout(timeouts.shutdown, connection).await {
        log_end(ended);
    }
}

fn log_end(ended: hyper::Result<()>) {
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended");
    }
}

async fn handshake(
    socket: TcpStream,
    address: SocketAddr,
    shared: &Shared,
) -> Option<Box<TlsStream<TcpStream>>> {
    let within = shared.timeouts.handshake;
    let accepting = async {
        let _seat = shared.api.fairness.handshake(address.ip(), within).await?;
        let acceptor = TlsAcceptor::from(shared.tls.config());
        Some(tokio::time::timeout(within, acceptor.accept(socket)).await)
    };
    let accepted = tokio::select! {
        accepted = accepting => accepted,
        () = shared.stop.cancelled() => return None,
    };
    match accepted {
        Some(Ok(Ok(stream))) => return Some(Box::new(stream)),
        Some(Ok(Err(error))) => tracing::debug!(%error, "TLS handshake failed"),
        Some(Err(_)) => tracing::debug!("TLS handshake timed out"),
        None => tracing::debug!("rejecting a connection: too many TLS handshakes"),
    }
    None
}
