//! Connections to the server: TLS with the administrator's certificate, HTTP/1.1 with keep-alive for requests, HTTP/2
//! for many watches on one connection.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kennel_types::meta::{MANAGED_FIELDS_HEADER, OMIT_MANAGED_FIELDS};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

const CONNECTION_WINDOW: u32 = 4 << 20;
const STREAM_WINDOW: u32 = 256 << 10;

/// A server and credentials.
#[derive(Clone)]
pub(super) struct Target {
    address: String,
    config: Arc<ClientConfig>,
    without_certificate: Arc<ClientConfig>,
}

impl Target {
    /// Reads the client certificate from a kubeconfig.
    pub(super) fn new(address: &str, kubeconfig: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(kubeconfig)?;
        let config: Value = serde_json::from_str(&text)?;
        let pem =
            |pointer: &str| -> Result<Vec<u8>> {
                let data = config.pointer(pointer).and_then(Value::as_str);
                Ok(STANDARD
                    .decode(data.with_context(|| format!("no {pointer} in the kubeconfig"))?)?)
            };
        let mut roots = RootCertStore::empty();
        let ca = pem("/clusters/0/cluster/certificate-authority-data")?;
        roots.add(CertificateDer::from_pem_slice(&ca)?)?;
        let certificate =
            CertificateDer::from_pem_slice(&pem("/users/0/user/client-certificate-data")?)?;
        let key = PrivateKeyDer::from_pem_slice(&pem("/users/0/user/client-key-data")?)?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots);
        let without_certificate = builder.clone().with_no_client_auth();
        let config = builder.with_client_auth_cert(vec![certificate], key)?;
        Ok(Self {
            address: address.to_owned(),
            config: Arc::new(config),
            without_certificate: Arc::new(without_certificate),
        })
    }

    async fn connect(&self, protocol: &[u8]) -> Result<TlsStream<TcpStream>> {
        let socket = TcpStream::connect(&self.address).await?;
        socket.set_nodelay(true)?;
        let mut config = (*self.config).clone();
        config.alpn_protocols = vec![protocol.to_vec()];
        let host = self.address.rsplit_once(':').map_or("", |(host, _)| host);
        let name = ServerName::try_from(host.to_owned())?;
        Ok(TlsConnector::from(Arc::new(config))
            .connect(name, socket)
            .await?)
    }

    /// The same server, without a client certificate.
    pub(super) fn anonymous(&self) -> Self {
        let mut target = self.clone();
        target.config = Arc::clone(&self.without_certificate);
        target
    }

    pub(super) async fn http1(&self) -> Result<Http1> {
        let stream = TokioIo::new(self.connect(b"http/1.1").await?);
        let (sender, connection) = http1::handshake(stream).await?;
        tokio::spawn(async move {
            // The pending request reports the error.
            let _result = connection.await;
        });
        Ok(Http1 {
            sender,
            managed_fields: None,
            encoding: None,
        })
    }

    pub(super) async fn http2(&self) -> Result<Http2> {
        let stream = TokioIo::new(self.connect(b"h2").await?);
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .initial_connection_window_size(CONNECTION_WINDOW)
            .initial_stream_window_size(STREAM_WINDOW);
        let (sender, connection) = builder.handshake(stream).await?;
        tokio::spawn(async move {
            let _result = connection.await;
        });
        Ok(Http2 {
            sender,
            authority: self.address.clone(),
        })
    }
}

/// An HTTP/1.1 connection, for one request at a time.
pub(super) struct Http1 {
    sender: http1::SendRequest<Full<Bytes>>,
    /// The header that says whether to leave managed fields out.
    managed_fields: Option<&'static str>,
    /// The content encoding that it accepts.
    encoding: Option<&'static str>,
}

impl Http1 {
    /// The same, but responses have no managed fields.
    pub(super) fn omitting_managed_fields(self) -> Self {
        let managed_fields = Some(OMIT_MANAGED_FIELDS);
        Self {
            managed_fields,
            ..self
        }
    }

    /// The same, but it accepts compressed responses.
    pub(super) fn accepting_gzip(self) -> Self {
        let encoding = Some("gzip");
        Self { encoding, ..self }
    }

    /// Sends a request; the body of the response is not read yet.
    pub(super) async fn send(
        &mut self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<Response<Incoming>> {
        self.send_as("application/json", method, path, body).await
    }

    async fn send_as(
        &mut self,
        content_type: &str,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<Response<Incoming>> {
        self.sender.ready().await?;
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, "kennel")
            .header(header::USER_AGENT, "kennel-bench/1")
            .header(header::CONTENT_TYPE, content_type);
        if let Some(managed_fields) = self.managed_fields {
            request = request.header(MANAGED_FIELDS_HEADER, managed_fields);
        }
        if let Some(encoding) = self.encoding {
            request = request.header(header::ACCEPT_ENCODING, encoding);
        }
        let request = request.body(Full::new(body))?;
        Ok(self.sender.send_request(request).await?)
    }

    /// Applies a merge patch.
    pub(super) async fn merge(&mut self, path: &str, patch: &Value) -> Result<()> {
        let (merge, body) = ("application/merge-patch+json", patch.to_string());
        self.patch(merge, path, body.into()).await
    }

    /// Applies a patch of any format.
    pub(super) async fn patch(&mut self, format: &str, path: &str, body: Bytes) -> Result<()> {
        let response = self.send_as(format, Method::PATCH, path, body).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        let text = String::from_utf8_lossy(&body);
        ensure!(status.is_success(), "patch failed with {status}: {text}");
        Ok(())
    }

    /// Creates an object; returns the size of the response.
    pub(super) async fn create(&mut self, path: &str, body: Bytes) -> Result<usize> {
        let response = self.send(Method::POST, path, body).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        ensure!(
            status == StatusCode::CREATED,
            "create failed with {status}: {}",
            String::from_utf8_lossy(&body)
        );
        Ok(body.len())
    }

    /// Sends a GET request with a bearer token.
    pub(super) async fn get_with(&mut self, path: &str, token: &str) -> Result<()> {
        self.sender.ready().await?;
        let request = Request::builder()
            .uri(path)
            .header(header::HOST, "kennel")
            .header(header::AUTHORIZATION, format!("Bearer {token}"))
            .body(Full::new(Bytes::new()))?;
        let response = self.sender.send_request(request).await?;
        let status = response.status();
        response.into_body().collect().await?;
        ensure!(status.is_success(), "{path}: {status}");
        Ok(())
    }

    /// Sends a GET request; returns the body.
    pub(super) async fn get(&mut self, path: &str) -> Result<Bytes> {
        let response = self.send(Method::GET, path, Bytes::new()).await?;
        ensure!(
            response.status().is_success(),
            "{path}: {}",
            response.status()
        );
        Ok(response.into_body().collect().await?.to_bytes())
    }
}

/// An HTTP/2 connection, for many concurrent requests.
#[derive(Clone)]
pub(super) struct Http2 {
    sender: http2::SendRequest<Full<Bytes>>,
    authority: String,
}

impl Http2 {
    /// Starts a watch.
    pub(super) async fn stream(&mut self, path: &str) -> Result<Incoming> {
        self.sender.ready().await?;
        let request = Request::builder()
            .uri(format!("https://{}{path}", self.authority))
            .header(header::USER_AGENT, "kennel-bench/1")
            .body(Full::new(Bytes::new()))?;
        let response = self.sender.send_request(request).await?;
        ensure!(
            response.status().is_success(),
            "{path}: {}",
            response.status()
        );
        Ok(response.into_body())
    }
}
