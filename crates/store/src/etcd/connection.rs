//! The HTTP/2 connection to one member of etcd, over TCP or TLS, which reconnects when it breaks.

use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_util::either::Either;
use tonic::transport::{Channel, Endpoint, Uri};
use tower::service_fn;

use super::error::EtcdError;
use super::options::{self, EtcdTls};

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
pub(super) fn channel(member: &str, tls: Option<&TlsConnector>) -> Result<Channel, EtcdError> {
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

async fn connect(member: &str, tls: Option<TlsConnector>) -> std::io::Result<Stream> {
    let tcp = TcpStream::connect(member).await?;
    tcp.set_nodelay(true)?;
    let Some(tls) = tls else {
        return Ok(Either::Left(tcp));
    };
    let name = ServerName::try_from(options::host(member).to_owned());
    let name = name.map_err(std::io::Error::other)?;
    tls.connect(name, tcp).await.map(Either::Right)
}

/// Reads the files of TLS.
pub(super) fn tls(files: &EtcdTls) -> Result<TlsConnector, EtcdError> {
    let failed = |path: &std::path::Path, reason: String| EtcdError::TlsFile {
        path: path.to_owned(),
        reason,
    };
    let certificates = |path: &std::path::Path| {
        let read = CertificateDer::pem_file_iter(path)
            .and_then(Iterator::collect::<Result<Vec<CertificateDer<'static>>, _>>);
        match read {
            Ok(found) if found.is_empty() => Err(failed(path, "it has no certificate".to_owned())),
            other => other.map_err(|error| failed(path, error.to_string())),
        }
    };
    let mut roots = RootCertStore::empty();
    for certificate in certificates(&files.ca_file)? {
        let added = roots.add(certificate);
        added.map_err(|error| failed(&files.ca_file, error.to_string()))?;
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| failed(&files.ca_file, error.to_string()))?;
    let config = config.with_root_certificates(roots);
    let mut config = match &files.client {
        None => config.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain = certificates(certificate)?;
            let secret = PrivateKeyDer::from_pem_file(key);
            let secret = secret.map_err(|error| failed(key, error.to_string()))?;
            let config = config.with_client_auth_cert(chain, secret);
            config.map_err(|error| failed(key, error.to_string()))?
        }
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}
