//! One connection: handshake, requests, answers.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{Request, Response};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::Watcher;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use super::body::Body;
use super::{limits, tls};
use crate::api::Api;
use crate::request::User;
use crate::status::ApiError;
use crate::verbs::Reply;

/// Serves one connection until it ends.
pub(super) async fn serve(socket: TcpStream, tls: TlsAcceptor, api: Arc<Api>, graceful: Watcher) {
    // Answers are small and come in one piece: waiting to fill a packet only delays them.
    if let Err(error) = socket.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
    let stream = match tokio::time::timeout(limits::HANDSHAKE, tls.accept(socket)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "TLS handshake failed"),
        Err(_) => return tracing::debug!("TLS handshake took too long"),
    };
    let certificates = stream.get_ref().1.peer_certificates();
    let user = tls::user(certificates.and_then(|list| list.first()));
    let service = service_fn(move |request| {
        let (api, user) = (Arc::clone(&api), user.clone());
        async move { Ok::<_, Infallible>(answer(&api, request, user).await) }
    });
    let builder = builder();
    let connection = builder
        .serve_connection(TokioIo::new(stream), service)
        .into_owned();
    if let Err(error) = graceful.watch(connection).await {
        tracing::debug!(error = %error, "connection ended");
    }
}

fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits::HEADERS)
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
pub async fn answer<B>(api: &Arc<Api>, request: Request<B>, user: User) -> Response<Body>
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (parts, body) = request.into_parts();
    let body = match read(body).await {
        Ok(body) => body,
        Err(error) => return refuse(&error),
    };
    let request = Request::from_parts(parts, body);
    let served = AssertUnwindSafe(api.serve(request, user))
        .catch_unwind()
        .await;
    served.unwrap_or_else(|_| refuse(&ApiError::internal("a request handler panicked")))
}

async fn read<B>(body: B) -> Result<Bytes, ApiError>
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let whole = Limited::new(body, limits::BODY_BYTES_MAX).collect();
    match tokio::time::timeout(limits::BODY, whole).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            Err(ApiError::too_large(limits::BODY_BYTES_MAX))
        }
        Ok(Err(error)) => Err(ApiError::bad_request(format!(
            "cannot read the body: {error}"
        ))),
        Err(_) => Err(ApiError::bad_request("the body did not arrive in time")),
    }
}

fn refuse(error: &ApiError) -> Response<Body> {
    crate::api::respond(Reply::from(error), false)
}
