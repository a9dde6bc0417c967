//! `healthCheckNodePort`: tells load balancers whether this node has ready endpoints of a service whose
//! `externalTrafficPolicy` is `Local`.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http::{Response, StatusCode};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use kennel_core::services::{HealthCheck, ServiceName};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::AbortHandle;

/// Connections at once, per service.
const CONNECTIONS_MAX: usize = 64;
/// For a request and its answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Before a port that another program has is tried again.
const BIND_RETRY: Duration = Duration::from_secs(10);

/// The servers of all services that have one.
#[derive(Debug, Default)]
pub(crate) struct HealthChecks(BTreeMap<ServiceName, Server>);

#[derive(Debug)]
struct Server {
    port: u16,
    local_endpoints: watch::Sender<usize>,
    task: AbortHandle,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl HealthChecks {
    /// Starts, updates or stops the server of a service.
    pub(crate) fn put(&mut self, name: &ServiceName, check: Option<HealthCheck>) {
        let Some(check) = check else {
            self.0.remove(name);
            return;
        };
        if let Some(server) = self.0.get(name)
            && server.port == check.port
        {
            server.local_endpoints.send_replace(check.local_endpoints);
            return;
        }
        // Ends the one with another port.
        self.0.remove(name);
        let (local_endpoints, receiver) = watch::channel(check.local_endpoints);
        let task = tokio::spawn(serve(name.clone(), check.port, receiver)).abort_handle();
        let server = Server {
            port: check.port,
            local_endpoints,
            task,
        };
        self.0.insert(name.clone(), server);
    }

    #[cfg(test)]
    pub(crate) fn ports(&self) -> Vec<u16> {
        self.0.values().map(|server| server.port).collect()
    }
}

async fn serve(name: ServiceName, port: u16, local_endpoints: watch::Receiver<usize>) {
    let listener = bind(&name, port).await;
    let seats = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let Ok(seat) = Arc::clone(&seats).acquire_owned().await else {
            return;
        };
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        while connections.try_join_next().is_some() {}
        let answer = answer(&name, *local_endpoints.borrow());
        connections.spawn(async move {
            let _answered = tokio::time::timeout(TIMEOUT, respond(stream, answer)).await;
            drop(seat);
        });
    }
}

async fn bind(name: &ServiceName, port: u16) -> TcpListener {
    let address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
    let mut is_warned = false;
    loop {
        match TcpListener::bind(address).await {
            Ok(listener) => return listener,
            Err(error) if !std::mem::replace(&mut is_warned, true) => {
                tracing::warn!(
                    "cannot serve healthCheckNodePort {port} of service {name}: {error}"
                );
            }
            Err(_) => {}
        }
        tokio::time::sleep(BIND_RETRY).await;
    }
}

async fn respond(stream: TcpStream, answer: Response<Full<Bytes>>) {
    let service = service_fn(move |_| {
        let answer = answer.clone();
        async move { Ok::<_, Infallible>(answer) }
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).keep_alive(false);
    // The client may have gone away.
    let _served = server.serve_connection(TokioIo::new(stream), service).await;
}

/// As kube-proxy answers.
fn answer(name: &ServiceName, local_endpoints: usize) -> Response<Full<Bytes>> {
    let status = match local_endpoints {
        0 => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::OK,
    };
    let body = json!({
        "service": {"namespace": &*name.namespace, "name": &*name.name},
        "localEndpoints": local_endpoints,
        "serviceProxyHealthy": true,
    });
    let mut response = Response::new(Full::new(Bytes::from(body.to_string())));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        "content-type",
        http::HeaderValue::from_static("application/json"),
    );
    headers.insert(
        "x-content-type-options",
        http::HeaderValue::from_static("nosniff"),
    );
    headers.insert("x-load-balancing-endpoint-weight", local_endpoints.into());
    response
}
