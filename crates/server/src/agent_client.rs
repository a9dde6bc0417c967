//! The client of the kubelet API of the nodes' agents. Authenticates with this server's client certificate,
//! and requires a certificate of this cluster's CA for the node's name. Opens one connection per request,
//! because requests are few and long.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{PrivateKeyDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::limits;
use crate::live::Live;
use crate::pki::Pki;
use crate::tcp;
use crate::tls::{self, TlsError};

/// The agent of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Agent {
    /// The node's name, which the agent's certificate must have.
    pub(crate) node: String,
    /// An address or a DNS name.
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Agent {
    /// Host and port as URLs have them.
    pub(crate) fn authority(&self) -> String {
        authority(&self.host, self.port)
    }
}

fn authority(host: &str, port: u16) -> String {
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

/// A client of the agents of this cluster. Its certificates can be replaced.
#[derive(Clone)]
pub(crate) struct AgentClient(Live<Arc<ClientConfig>>);

impl std::fmt::Debug for AgentClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AgentClient")
    }
}

pub(crate) type Request = http::Request<Full<Bytes>>;
pub(crate) type Answer = http::Response<Incoming>;

impl AgentClient {
    pub(crate) fn new(pki: &Pki) -> Result<Self, TlsError> {
        Ok(Self(Live::new(config(pki)?)))
    }

    /// New requests use these certificates.
    pub(crate) fn replace(&self, pki: &Pki) -> Result<(), TlsError> {
        self.0.set(config(pki)?);
        Ok(())
    }

    /// Sends a request to an agent.
    pub(crate) async fn send(&self, agent: &Agent, request: Request) -> Result<Answer, SendError> {
        let connecting = async {
            let socket = dial(&agent.host, agent.port).await?;
            let name = ServerName::try_from(agent.node.clone());
            let name = name.map_err(|_| SendError::NodeName)?;
            let connector = TlsConnector::from(Arc::clone(&*self.0.get()));
            let connected = connector.connect(name, socket).await;
            connected.map_err(SendError::Tls)
        };
        let stream = tokio::time::timeout(limits::DIAL, connecting).await;
        let timeout = |_| SendError::DialTimeout(agent.authority());
        exchange(stream.map_err(timeout)??, request).await
    }
}

fn config(pki: &Pki) -> Result<Arc<ClientConfig>, TlsError> {
    // With the cross certificates, for agents that trust only an earlier CA.
    let chain = pki.kubelet_client_cert_pem.clone() + &pki.authority.cross.concat();
    let key = PrivateKeyDer::from_pem_slice(pki.kubelet_client_key_pem.as_bytes())?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(tls::roots(pki)?)
        .with_client_auth_cert(tls::certificates(&chain)?, key)?;
    Ok(Arc::new(config))
}

/// Why a request could not be sent, in the wording of Go's network library, which upstream shows.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    #[error("dial tcp {0}: i/o timeout")]
    DialTimeout(String),
    #[error("dial tcp {address}: connect: {why}")]
    Connect { address: String, why: String },
    #[error("dial tcp: lookup {host}: {error}")]
    Lookup { host: String, error: io::Error },
    #[error("tls: the node's name is not valid in a certificate")]
    NodeName,
    #[error("tls: failed to verify certificate: x509: {0}")]
    Tls(io::Error),
    #[error("tls: node {node} has no serving certificate yet: {why}")]
    NoServingCertificate { node: String, why: String },
    #[error("net/http: timeout awaiting response headers")]
    HeaderTimeout,
    #[error("{0}")]
    Http(String),
}

impl SendError {
    fn connect(host: &str, port: u16, error: io::Error) -> Self {
        let why = match error.kind() {
            io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
            io::ErrorKind::HostUnreachable => "no route to host".to_owned(),
            io::ErrorKind::NetworkUnreachable => "network is unreachable".to_owned(),
            io::ErrorKind::TimedOut => "connection timed out".to_owned(),
            _ if error.raw_os_error().is_none() => {
                let host = host.to_owned();
                return Self::Lookup { host, error };
            }
            _ => error.to_string(),
        };
        let address = authority(host, port);
        Self::Connect { address, why }
    }

    fn http(error: &hyper::Error) -> Self {
        let cause = std::error::Error::source(error).map(ToString::to_string);
        Self::Http(cause.unwrap_or_else(|| error.to_string()))
    }
}

/// Sends a request without TLS.
pub(crate) async fn send_without_tls(
    host: &str,
    port: u16,
    request: Request,
) -> Result<Answer, SendError> {
    let socket = tokio::time::timeout(limits::DIAL, dial(host, port)).await;
    let timeout = |_| SendError::DialTimeout(format!("{host}:{port}"));
    exchange(socket.map_err(timeout)??, request).await
}

async fn dial(host: &str, port: u16) -> Result<TcpStream, SendError> {
    let connected = TcpStream::connect((host, port)).await;
    let socket = connected.map_err(|error| SendError::connect(host, port, error))?;
    if let Err(error) = socket.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
    tcp::enable_keepalive(&socket);
    Ok(socket)
}

async fn exchange<S>(stream: S, request: Request) -> Result<Answer, SendError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| SendError::Http(error.to_string()))?;
    // The task ends when the answer has been read or dropped.
    tokio::spawn(async move {
        if let Err(error) = connection.with_upgrades().await {
            tracing::debug!(%error, "a connection to an agent ended with an error");
        }
    });
    let answer = tokio::time::timeout(limits::AGENT_HEADERS, sender.send_request(request)).await;
    let answer = answer.map_err(|_| SendError::HeaderTimeout)?;
    answer.map_err(|error| SendError::http(&error))
}
