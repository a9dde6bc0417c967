//! The HTTP/2 connection to one member of etcd, over TCP or TLS, which reconnects when it breaks.

use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_util::either::Either;
use tonic::transport::{Channel, Endpoint, Uri};
use tower::service_fn;

use super::error::EtcdError;
use super::options;
use super::tls::Tls;

/// How long one attempt to connect may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// The least that etcd allows.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(5);
/// After so long without an answer to a ping, the connection is given up.
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(3);

/// The request was not sent, because there was no connection.
#[derive(Debug, thiserror::Error)]
#[error("cannot connect: {0}")]
pub(super) struct NotConnected(std::io::Error);

/// Connects lazily, with the first call.
pub(super) fn channel(member: &str, tls: Option<&Arc<Tls>>) -> Result<Channel, EtcdError> {
    let endpoint = Endpoint::from_shared(format!("http://{member}"));
    let endpoint = endpoint.map_err(|error| EtcdError::Address {
        member: member.to_owned(),
        reason: error.to_string(),
    })?;
    let (member, tls) = (Arc::<str>::from(member), tls.cloned());
    let connector = service_fn(move |_: Uri| {
        let (member, tls) = (Arc::clone(&member), tls.clone());
        async move {
            let connected = tokio::time::timeout(CONNECT_TIMEOUT, connect(&member, tls)).await;
            let stream = connected.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into()));
            stream.map(TokioIo::new).map_err(NotConnected)
        }
    });
    let endpoint = endpoint
        .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
        .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
        .keep_alive_while_idle(true);
    Ok(endpoint.connect_with_connector_lazy(connector))
}

type Stream = Either<TcpStream, tokio_rustls::client::TlsStream<TcpStream>>;

async fn connect(member: &str, tls: Option<Arc<Tls>>) -> std::io::Result<Stream> {
    let tcp = TcpStream::connect(member).await?;
    tcp.set_nodelay(true)?;
    let Some(tls) = tls else {
        return Ok(Either::Left(tcp));
    };
    let name = ServerName::try_from(options::host(member).to_owned());
    let name = name.map_err(std::io::Error::other)?;
    let connector = tokio::task::spawn_blocking(move || tls.connector());
    let connector = connector.await.map_err(std::io::Error::other)?;
    connector.connect(name, tcp).await.map(Either::Right)
}
