//! Clients whose requests and watches share one HTTP/2 connection, as those of a kubelet do. Clients of
//! [`connection`] speak HTTP/1.1, which takes a connection for each watch.

use std::sync::Arc;
use std::time::Duration;

use hyper_rustls::{
    DefaultServerNameResolver, FixedServerNameResolver, HttpsConnector, ResolveServerName,
};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ClientBuilder, ConfigExt as _};
use kube::{Client, Config};
use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use tower::{BoxError, ServiceBuilder};

use crate::connection::{self, Origin};

/// What is offered to the server in the TLS handshake (ALPN), the preferred one first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];
/// How much of one answer the server may send ahead: a whole endpoint slice, several times.
const STREAM_WINDOW_BYTES: u32 = 256 * 1024;
/// The same of all answers together, which bounds what a client that reads slowly holds in memory.
const CONNECTION_WINDOW_BYTES: u32 = 1024 * 1024;
/// Silence after which the server is asked whether it is there: client-go's.
const PING_AFTER: Duration = Duration::from_secs(30);
/// How long it may take to answer: client-go's. Without this, a client would wait for ever for the events of a server that is
/// cut off.
const PING_TIMEOUT: Duration = Duration::from_secs(15);

/// As [`connection::client`]. With a server that speaks no HTTP/2, each watch has a connection of its own.
///
/// Requests that begin at the same time before there is a connection open one each, of which one stays: callers who mind send
/// one request first.
pub fn client(mut config: Config, origin: Origin) -> Result<Client, kube::Error> {
    if config.proxy_url.is_some() {
        return connection::client(config, origin);
    }
    config.headers.extend(crate::headers());
    let layer = connection::explaining(&config, origin);
    let https = connector(&config)?;
    let http: legacy::Client<_, Body> = legacy::Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        // The watches keep it open, and pings find out whether it is alive.
        .pool_idle_timeout(None::<Duration>)
        .http2_initial_stream_window_size(STREAM_WINDOW_BYTES)
        .http2_initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .http2_keep_alive_interval(PING_AFTER)
        .http2_keep_alive_timeout(PING_TIMEOUT)
        .build(https);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(http);
    let namespace = config.default_namespace;
    Ok(ClientBuilder::new(service, namespace)
        .with_layer(&layer)
        .build())
}

fn connector(config: &Config) -> Result<HttpsConnector<HttpConnector>, kube::Error> {
    let mut tls = config.rustls_client_config()?;
    tls.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).into();
    // One connection is opened, so that there is none to resume.
    tls.resumption = Resumption::disabled();
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(config.connect_timeout);
    let names: Arc<dyn ResolveServerName + Send + Sync> = match &config.tls_server_name {
        Some(name) => {
            let name = ServerName::try_from(name.clone());
            let name = name.map_err(|error| kube::Error::Service(Box::new(error)))?;
            Arc::new(FixedServerNameResolver::new(name))
        }
        None => Arc::new(DefaultServerNameResolver::default()),
    };
    Ok(HttpsConnector::new(tcp, tls, false, names))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_refused_connection_names_the_address() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        drop(listener);
        let client = client(Config::new(url.parse().unwrap()), Origin::Kubeconfig).unwrap();
        let failed = client.apiserver_version().await.unwrap_err();
        let text = connection::describe(&failed);
        assert!(
            text.starts_with(&format!("{url} refuses the connection: check")),
            "{text}"
        );
    }
}
