//! One connection: handshake, requests, answers.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{Request, Response, header};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::Watcher;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;

use super::body::Body;
use super::limits::{self, Patience};
use super::line::Line;
use super::patient::Patient;
use super::{read, tls};
use crate::api::{Api, Entry};
use crate::request::Caller;
use crate::status::ApiError;
use crate::verbs::Reply;

/// What every HTTP/2 client sends before anything else.
const HTTP2_PREFACE_BYTES: usize = 24;

/// What all connections share.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) api: Arc<Api>,
    pub(super) tls: TlsAcceptor,
    pub(super) patience: Patience,
    pub(super) stop: CancellationToken,
}

/// Serves one connection until it ends.
pub(super) async fn serve(
    socket: TcpStream,
    address: SocketAddr,
    shared: Shared,
    graceful: Watcher,
) {
    // Answers are small and come in one piece: waiting to fill a packet only delays them.
    if let Err(error) = socket.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
    let Some(stream) = handshake(socket, &shared).await else {
        return;
    };
    let (patience, stop) = (shared.patience, shared.stop.clone());
    let session = stream.get_ref().1;
    let certificates = session.peer_certificates();
    let certificate = certificates.and_then(|list| list.first());
    let caller = Caller::outside(address, certificate.and_then(tls::user));
    let is_http2 = session.alpn_protocol() == Some(b"h2");
    let opening = if is_http2 { HTTP2_PREFACE_BYTES } else { 0 };
    let stream = Patient::new(stream, opening, patience.headers, patience.stall);
    let spoken = Arc::new(AtomicBool::new(false));
    let has_spoken = Arc::clone(&spoken);
    let service = service_fn(move |request| {
        spoken.store(true, Ordering::Relaxed);
        let (shared, caller) = (shared.clone(), caller.clone());
        let within = shared.patience;
        async move { Ok::<_, Infallible>(answer_within(&shared.api, request, caller, within).await) }
    });
    let builder = builder(is_http2, patience);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    // A client that has asked for nothing when the server stops has nothing to finish.
    let stopped_in_silence = async {
        stop.cancelled().await;
        if has_spoken.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    };
    let ended = tokio::select! {
        ended = graceful.watch(connection.into_owned()) => ended,
        () = stopped_in_silence => return,
    };
    if let Err(error) = ended {
        tracing::debug!(error = %error, "connection ended");
    }
}

async fn handshake(socket: TcpStream, shared: &Shared) -> Option<TlsStream<TcpStream>> {
    let accepting = tokio::time::timeout(shared.patience.handshake, shared.tls.accept(socket));
    let accepted = tokio::select! {
        accepted = accepting => accepted,
        () = shared.stop.cancelled() => return None,
    };
    match accepted {
        Ok(Ok(stream)) => return Some(stream),
        Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
        Err(_) => tracing::debug!("TLS handshake took too long"),
    }
    None
}

/// The protocol is the one agreed on in the handshake: guessing it from the first bytes would mean to
/// wait for them without a bound.
fn builder(is_http2: bool, patience: Patience) -> Builder<TokioExecutor> {
    let builder = Builder::new(TokioExecutor::new());
    let mut builder = if is_http2 {
        builder.http2_only()
    } else {
        builder.http1_only()
    };
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(patience.headers)
        .max_buf_size(limits::HEADER_BYTES_MAX as usize);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits::STREAMS_MAX)
        .max_header_list_size(limits::HEADER_BYTES_MAX)
        .keep_alive_interval(limits::PING_EVERY)
        .keep_alive_timeout(limits::PING_WAIT);
    builder
}

/// Reads the body and asks the API. A panic in a handler is an answer too.
pub async fn answer<B>(
    api: &Arc<Api>,
    request: Request<B>,
    caller: impl Into<Caller>,
) -> Response<Body>
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    answer_within(api, request, caller.into(), Patience::default()).await
}

async fn answer_within<B>(
    api: &Arc<Api>,
    request: Request<B>,
    caller: Caller,
    patience: Patience,
) -> Response<Body>
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let line = Line::of(&request);
    let mut note = api.settings.audit.note(&request, &caller);
    let (parts, body) = request.into_parts();
    let mut name = "-".to_owned();
    let entered = api.identify(&parts, &caller).and_then(|user| {
        name.clone_from(&user.name);
        note.known(&user);
        api.enter(parts, user)
    });
    note.judged(&entered);
    let outcome = match entered {
        Ok(entry) => attempt(api, entry, body, patience).await,
        Err(error) => Err(error),
    };
    let mut response =
        outcome.unwrap_or_else(|error| crate::api::respond(Reply::from(&error), false));
    line.write(&api.metrics, &name, response.status().as_u16());
    note.answered(&mut response);
    response
}

/// Reads the body of a request that may be made, and carries it out.
async fn attempt<B>(
    api: &Arc<Api>,
    entry: Entry,
    body: B,
    patience: Patience,
) -> Result<Response<Body>, ApiError>
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let waiting = entry.parts.headers.contains_key(header::EXPECT);
    let body = read::read(body, waiting, patience.body).await?;
    let served = AssertUnwindSafe(api.serve(entry, body)).catch_unwind();
    let served = served.await;
    served.map_err(|_| ApiError::internal("a request handler panicked"))
}
