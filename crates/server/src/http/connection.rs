//! One connection: handshake, requests, answers.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{Request, Response, header};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kennel_types::Verb;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::body::Body;
use super::flight::Seat;
use super::limits::{self, Patience};
use super::line::Line;
use super::patient::Patient;
use super::switch::Switch;
use super::tls::Tls;
use super::traffic::{Boredom, Exchange, Traffic};
use super::{alive, head, protocol, read};
use crate::api::{Api, Entry};
use crate::request::Caller;
use crate::status::ApiError;
use crate::verbs::{Reply, connect};

/// What every HTTP/2 client sends before anything else.
const HTTP2_PREFACE_BYTES: usize = 24;

/// What all connections share.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) api: Arc<Api>,
    pub(super) tls: Tls,
    pub(super) patience: Patience,
    pub(super) stop: CancellationToken,
}

/// Serves one connection until it ends.
pub(super) async fn serve(socket: TcpStream, address: SocketAddr, shared: Shared) {
    let Some(_place) = shared.api.flight.connection(address.ip()).await else {
        tracing::debug!(%address, "too many connections from one address");
        return;
    };
    // Answers are small and come in one piece: waiting to fill a packet only delays them.
    if let Err(error) = socket.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
    alive::ask_now_and_then(&socket);
    let Some(stream) = handshake(socket, address, &shared).await else {
        return;
    };
    let session = stream.get_ref().1;
    let caller = Caller::outside(address, shared.tls.judge(session.peer_certificates()));
    let is_http2 = session.alpn_protocol() == Some(b"h2");
    let sessions = TaskTracker::new();
    converse(stream, is_http2, caller, shared, &sessions).await;
    sessions.close();
    // A session that has left HTTP is still a connection, and keeps its place.
    sessions.wait().await;
}

/// Answers what is asked until either side has had enough.
async fn converse(
    stream: TlsStream<TcpStream>,
    is_http2: bool,
    caller: Caller,
    shared: Shared,
    sessions: &TaskTracker,
) {
    let (patience, stop) = (shared.patience, shared.stop.clone());
    let opening = if is_http2 { HTTP2_PREFACE_BYTES } else { 0 };
    let stream = Patient::new(stream, opening, patience.headers, patience.stall);
    let untiring = stream.untiring();
    let spoken = AtomicBool::new(false);
    let traffic = is_http2.then(Traffic::new);
    let service = service_fn(|mut request| {
        spoken.store(true, Ordering::Relaxed);
        let switch = Switch::of(&mut request, &untiring, sessions);
        let (shared, caller) = (shared.clone(), caller.clone());
        let exchange = traffic.as_ref().map(Traffic::begin);
        async move {
            let within = shared.patience;
            let answer = answer_within(&shared.api, request, caller, within, switch, exchange);
            Ok::<_, Infallible>(answer.await)
        }
    });
    let (stream, stop) = (TokioIo::new(stream), stop.cancelled());
    // A client that has asked for nothing when the server stops has nothing to finish.
    let stop = stop.map(|()| !spoken.load(Ordering::Relaxed));
    if let Some(traffic) = &traffic {
        let connection = protocol::two().serve_connection(stream, service);
        let enough = async {
            tokio::select! {
                why = traffic.boring(patience) => why == Boredom::Stuck,
                hung_up = stop => hung_up,
            }
        };
        attend(
            connection,
            http2::Connection::graceful_shutdown,
            enough,
            patience,
        )
        .await;
    } else {
        let connection = protocol::one(patience).serve_connection(stream, service);
        let connection = connection.with_upgrades();
        attend(
            connection,
            http1::UpgradeableConnection::graceful_shutdown,
            stop,
            patience,
        )
        .await;
    }
}

/// Serves a connection until it ends, or there is enough of it: then it is asked to finish, or (true) it
/// is not even that.
async fn attend<C>(
    connection: C,
    finish: impl FnOnce(Pin<&mut C>),
    enough: impl Future<Output = bool>,
    patience: Patience,
) where
    C: Future<Output = hyper::Result<()>>,
{
    let mut connection = pin!(connection);
    let hung_up = tokio::select! {
        ended = connection.as_mut() => return note(ended),
        hung_up = enough => hung_up,
    };
    if hung_up {
        return;
    }
    finish(connection.as_mut());
    if let Ok(ended) = tokio::time::timeout(patience.shutdown, connection).await {
        note(ended);
    }
}

fn note(ended: hyper::Result<()>) {
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended");
    }
}

async fn handshake(
    socket: TcpStream,
    address: SocketAddr,
    shared: &Shared,
) -> Option<TlsStream<TcpStream>> {
    let within = shared.patience.handshake;
    let accepting = async {
        let _place = shared.api.flight.handshake(address.ip(), within).await?;
        let acceptor = TlsAcceptor::from(Arc::clone(&shared.tls.config));
        Some(tokio::time::timeout(within, acceptor.accept(socket)).await)
    };
    let accepted = tokio::select! {
        accepted = accepting => accepted,
        () = shared.stop.cancelled() => return None,
    };
    match accepted {
        Some(Ok(Ok(stream))) => return Some(stream),
        Some(Ok(Err(error))) => tracing::debug!(%error, "TLS handshake failed"),
        Some(Err(_)) => tracing::debug!("TLS handshake took too long"),
        None => tracing::debug!("too many TLS handshakes"),
    }
    None
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
    let patience = Patience::default();
    answer_within(api, request, caller.into(), patience, None, None).await
}

async fn answer_within<B>(
    api: &Arc<Api>,
    request: Request<B>,
    caller: Caller,
    patience: Patience,
    switch: Option<Box<Switch>>,
    exchange: Option<Exchange>,
) -> Response<Body>
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let line = Line::of(&request, caller.address.is_none());
    let mut note = api.settings.audit.note(&request, &caller);
    let (parts, body) = request.into_parts();
    let mut name = "-".to_owned();
    let identified = head::check(&parts, &caller).and_then(|()| api.identify(&parts, &caller));
    let entered = identified.and_then(|user| {
        name.clone_from(&user.name);
        note.known(&user);
        api.enter(parts, user, &mut note)
    });
    let outcome = match entered {
        Ok(entry) => attempt(api, Entry { switch, ..entry }, body, &caller, patience).await,
        Err(error) => Err(error),
    };
    let (mut response, seat) = outcome.unwrap_or_else(|error| {
        let reply = Reply::from(&error);
        (crate::api::respond(reply, false), None)
    });
    line.write(&api.metrics, &name, response.status().as_u16());
    note.answered(&mut response);
    response.map(|body| body.holding(seat, exchange))
}

/// Finds a seat for a request that may be made, reads its body, and carries it out. The answer holds the
/// seat until it has been read.
async fn attempt<B>(
    api: &Arc<Api>,
    mut entry: Entry,
    body: B,
    caller: &Caller,
    patience: Patience,
) -> Result<(Response<Body>, Option<Seat>), ApiError>
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let waiting = entry.parts.headers.contains_key(header::EXPECT);
    let bytes = body.size_hint().upper();
    let bytes = bytes.unwrap_or(limits::BODY_BYTES_MAX as u64);
    let mut seat = api.flight.request(&entry, caller, bytes).await?;
    let mut lasting = match entry.verb {
        Verb::Watch => Some(api.flight.watch(&entry, caller).await?),
        _ if connect::concerns(&entry.route) => Some(api.flight.session(&entry, caller).await?),
        _ => None,
    };
    if let (Some(switch), true) = (&mut entry.switch, connect::leaves_http(&entry.route)) {
        switch.hold(lasting.take());
    }
    let body = read::read(body, waiting, patience.body).await?;
    let served = AssertUnwindSafe(api.serve(entry, body)).catch_unwind();
    let response = served
        .await
        .map_err(|_| ApiError::internal("a request handler panicked"))?;
    if let (Some(lasting), Body::Stream(_)) = (lasting, response.body()) {
        seat = Some(lasting);
    }
    Ok((response, seat))
}
