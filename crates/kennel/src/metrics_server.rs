//! Serves `/metrics` and health checks over plain HTTP, for Prometheus and the kubelet.
//!
//! Bounded: a fixed number of connections, which are closed if they send no request in time.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

const CONNECTIONS_MAX: usize = 32;
/// How long a client may take to send its request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// Delay after a failed accept, for example for lack of file descriptors.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

pub(crate) trait Observable: Send + Sync + 'static {
    /// The text of `/metrics`.
    fn metrics(&self) -> String;
    /// Whether the health checks succeed.
    fn is_alive(&self) -> bool;
}

/// Binds the address. Returns the bound address, and a future that serves and never ends.
pub(crate) async fn listen(
    address: SocketAddr,
    source: impl Observable,
) -> anyhow::Result<(SocketAddr, impl Future<Output = ()> + Send)> {
    let listener = TcpListener::bind(address).await;
    let listener = listener.with_context(|| format!("cannot listen on {address}"))?;
    let address = listener.local_addr()?;
    Ok((address, serve(listener, Arc::new(source))))
}

async fn serve(listener: TcpListener, source: Arc<impl Observable>) {
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let permit = permits.clone().acquire_owned().await;
        match listener.accept().await {
            Ok((socket, _)) => {
                let source = Arc::clone(&source);
                tokio::spawn(async move {
                    connection(socket, source).await;
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::debug!(%error, "cannot accept a connection for metrics");
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            }
        }
    }
}

async fn connection(socket: TcpStream, source: Arc<impl Observable>) {
    let service = service_fn(move |request: Request<hyper::body::Incoming>| {
        let response = respond(request.uri().path(), &*source);
        async { Ok::<_, Infallible>(response) }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT);
    let connection = builder.serve_connection(TokioIo::new(socket), service);
    if let Err(error) = connection.await {
        tracing::debug!(%error, "a connection for metrics ended");
    }
}

fn respond(path: &str, source: &impl Observable) -> Response<Full<Bytes>> {
    let (code, text) = match path {
        "/metrics" => (StatusCode::OK, source.metrics()),
        "/healthz" | "/livez" | "/readyz" if source.is_alive() => (StatusCode::OK, "ok".to_owned()),
        "/healthz" | "/livez" | "/readyz" => {
            let stalled = "the reconcile loop is stalled\n";
            (StatusCode::INTERNAL_SERVER_ERROR, stalled.to_owned())
        }
        _ => (StatusCode::NOT_FOUND, "not found\n".to_owned()),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = code;
    let plain = http::HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response
        .headers_mut()
        .insert(http::header::CONTENT_TYPE, plain);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fake(bool);

    impl Observable for Fake {
        fn metrics(&self) -> String {
            "a 1\n".to_owned()
        }

        fn is_alive(&self) -> bool {
            self.0
        }
    }

    #[test]
    fn health_checks_report_liveness() {
        let code = |path: &str, alive: bool| respond(path, &Fake(alive)).status().as_u16();
        assert_eq!(code("/metrics", false), 200);
        assert_eq!(code("/healthz", true), 200);
        assert_eq!(code("/healthz", false), 500);
        assert_eq!(code("/readyz", false), 500);
        assert_eq!(code("/secrets", true), 404);
    }
}
