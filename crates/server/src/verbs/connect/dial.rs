//! The way to an agent: a socket, TLS with this server's own certificate, and the agent's, which must be of
//! this cluster's CA and for the node's name. One connection for each request: they are few, and long.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::location::Agent;
use crate::http::tls::TlsError;
use crate::http::{alive, limits};
use crate::pki::Pki;

/// The way to the agents of this cluster.
#[derive(Clone)]
pub struct Agents(Arc<ClientConfig>);

impl std::fmt::Debug for Agents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Agents")
    }
}

/// A request to be sent on.
pub(super) type Request = http::Request<Full<Bytes>>;
/// An answer that comes in as it is read.
pub(super) type Answer = http::Response<Incoming>;

impl Agents {
    /// With the certificates of this server.
    pub fn new(pki: &Pki) -> Result<Self, TlsError> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(pki.ca_pem.as_bytes())?)?;
        let chain = vec![CertificateDer::from_pem_slice(
            pki.agents_cert_pem.as_bytes(),
        )?];
        let key = PrivateKeyDer::from_pem_slice(pki.agents_key_pem.as_bytes())?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, key)?;
        Ok(Self(Arc::new(config)))
    }

    /// Sends a request to an agent. Why it could not be reached is told in Go's words, as upstream does.
    pub(super) async fn send(&self, agent: &Agent, request: Request) -> Result<Answer, String> {
        let connecting = async {
            let socket = dial(&agent.host, agent.port).await?;
            let name = ServerName::try_from(agent.node.clone());
            let name = name.map_err(|_| "tls: the node's name is none for a certificate")?;
            let connector = TlsConnector::from(Arc::clone(&self.0));
            let connected = connector.connect(name, socket).await;
            connected.map_err(|error| format!("tls: failed to verify certificate: x509: {error}"))
        };
        let stream = tokio::time::timeout(limits::DIAL, connecting).await;
        let timeout = || format!("dial tcp {}: i/o timeout", agent.authority());
        ask(stream.map_err(|_| timeout())??, request).await
    }
}

/// Sends a request to a server without TLS.
pub(super) async fn send_plainly(
    host: &str,
    port: u16,
    request: Request,
) -> Result<Answer, String> {
    let socket = tokio::time::timeout(limits::DIAL, dial(host, port)).await;
    let timeout = |_| format!("dial tcp {host}:{port}: i/o timeout");
    ask(socket.map_err(timeout)??, request).await
}

async fn dial(host: &str, port: u16) -> Result<TcpStream, String> {
    let connected = TcpStream::connect((host, port)).await;
    let socket = connected.map_err(|error| refusal(host, port, &error))?;
    if let Err(error) = socket.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
    alive::ask_now_and_then(&socket);
    Ok(socket)
}

fn refusal(host: &str, port: u16, error: &io::Error) -> String {
    let place = if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    };
    let why = match error.kind() {
        io::ErrorKind::ConnectionRefused => "connect: connection refused",
        io::ErrorKind::HostUnreachable => "connect: no route to host",
        io::ErrorKind::NetworkUnreachable => "connect: network is unreachable",
        io::ErrorKind::TimedOut => "connect: connection timed out",
        _ if error.raw_os_error().is_none() => return format!("dial tcp: lookup {host}: {error}"),
        _ => return format!("dial tcp {place}: connect: {error}"),
    };
    format!("dial tcp {place}: {why}")
}

async fn ask<S>(stream: S, request: Request) -> Result<Answer, String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| error.to_string())?;
    // It ends when the answer has been read, or nobody wants it any more.
    tokio::spawn(async move {
        if let Err(error) = connection.with_upgrades().await {
            tracing::debug!(%error, "a connection to an agent ended");
        }
    });
    let answer = tokio::time::timeout(limits::AGENT_HEADERS, sender.send_request(request)).await;
    let answer = answer.map_err(|_| "net/http: timeout awaiting response headers".to_owned())?;
    answer.map_err(|error| {
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        cause.unwrap_or_else(|| error.to_string())
    })
}
