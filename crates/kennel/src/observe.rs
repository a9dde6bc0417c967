//! What a part shows of itself over plain HTTP: `/metrics`, and whether it is alive.
//!
//! For a scraper and a kubelet nearby: it answers GET, knows four paths, and keeps no connection that
//! says nothing.

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

/// How many connections are served at once.
const CONNECTIONS: usize = 32;
/// How long a client may take to ask.
const HEADERS: Duration = Duration::from_secs(10);
/// How long to wait when no connection can be taken, for want of descriptors say.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// What is shown.
pub(crate) trait Observable: Send + Sync + 'static {
    /// The text of `/metrics`.
    fn metrics(&self) -> String;
    /// Does it do its work?
    fn is_alive(&self) -> bool;
}

/// Begins to listen, and says where. Serve by running the future; it never ends.
pub(crate) async fn listen(
    address: SocketAddr,
    shown: impl Observable,
) -> anyhow::Result<(SocketAddr, impl Future<Output = ()> + Send)> {
    let listener = TcpListener::bind(address).await;
    let listener = listener.with_context(|| format!("cannot listen on {address}"))?;
    let address = listener.local_addr()?;
    Ok((address, serve(listener, Arc::new(shown))))
}

async fn serve(listener: TcpListener, shown: Arc<impl Observable>) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let permit = room.clone().acquire_owned().await;
        match listener.accept().await {
            Ok((socket, _)) => {
                let shown = Arc::clone(&shown);
                tokio::spawn(async move {
                    connection(socket, shown).await;
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::debug!(%error, "no connection for metrics could be taken");
                tokio::time::sleep(ACCEPT_AGAIN).await;
            }
        }
    }
}

async fn connection(socket: TcpStream, shown: Arc<impl Observable>) {
    let service = service_fn(move |request: Request<hyper::body::Incoming>| {
        let answer = answer(request.uri().path(), &*shown);
        async { Ok::<_, Infallible>(answer) }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS);
    let connection = builder.serve_connection(TokioIo::new(socket), service);
    if let Err(error) = connection.await {
        tracing::debug!(%error, "a connection for metrics ended");
    }
}

fn answer(path: &str, shown: &impl Observable) -> Response<Full<Bytes>> {
    let (code, text) = match path {
        "/metrics" => (StatusCode::OK, shown.metrics()),
        "/healthz" | "/livez" | "/readyz" if shown.is_alive() => (StatusCode::OK, "ok".to_owned()),
        "/healthz" | "/livez" | "/readyz" => {
            let stuck = "the loop has not come round for a while\n";
            (StatusCode::INTERNAL_SERVER_ERROR, stuck.to_owned())
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

    struct Shown(bool);

    impl Observable for Shown {
        fn metrics(&self) -> String {
            "a 1\n".to_owned()
        }

        fn is_alive(&self) -> bool {
            self.0
        }
    }

    #[test]
    fn health_is_what_the_part_says_it_is() {
        let code = |path: &str, alive: bool| answer(path, &Shown(alive)).status().as_u16();
        assert_eq!(code("/metrics", false), 200);
        assert_eq!(code("/healthz", true), 200);
        assert_eq!(code("/healthz", false), 500);
        assert_eq!(code("/readyz", false), 500);
        assert_eq!(code("/secrets", true), 404);
    }
}
