//! A raw HTTP/1.1 client over TLS, as administrator.

use std::sync::Arc;
use std::time::Duration;

use kennel_server::server::Server;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Long enough for any machine.
pub(super) const TIMEOUT: Duration = Duration::from_secs(30);

/// A connection.
pub(super) struct Client(TlsStream<TcpStream>);

impl Client {
    pub(super) async fn open(server: &Server) -> Self {
        let pki = server.kubeconfig.with_file_name("pki");
        let read = |file: &str| std::fs::read(pki.join(file)).unwrap();
        let certificate = |file| CertificateDer::from_pem_slice(&read(file)).unwrap();
        let key = PrivateKeyDer::from_pem_slice(&read("admin.key")).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(certificate("ca.crt")).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_client_auth_cert(vec![certificate("admin.crt")], key)
            .unwrap();
        let socket = TcpStream::connect(server.address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let connector = TlsConnector::from(Arc::new(config));
        Self(connector.connect(name, socket).await.unwrap())
    }

    /// Sends a request without a body.
    pub(super) async fn ask(&mut self, line: &str, headers: &[&str]) {
        let headers = [&["host: kennel"], headers, &["\r\n"]]
            .concat()
            .join("\r\n");
        let head = format!("{line} HTTP/1.1\r\n{headers}");
        self.say(&head).await;
    }

    pub(super) async fn say(&mut self, words: &str) {
        self.0.write_all(words.as_bytes()).await.unwrap();
        self.0.flush().await.unwrap();
    }

    /// Reads up to and including this text.
    pub(super) async fn until(&mut self, end: &str) -> String {
        let mut read = Vec::new();
        let reading = async {
            while !read.ends_with(end.as_bytes()) {
                read.push(self.0.read_u8().await?);
            }
            Ok::<_, std::io::Error>(())
        };
        let ended = tokio::time::timeout(TIMEOUT, reading).await;
        let said = String::from_utf8_lossy(&read).into_owned();
        match ended {
            Ok(Ok(())) => said,
            other => panic!("{other:?} after {said:?}, without {end:?}"),
        }
    }

    /// Reads what is left, to the end.
    pub(super) async fn rest(&mut self) -> String {
        let mut read = Vec::new();
        let reading = self.0.read_to_end(&mut read);
        let ended = tokio::time::timeout(TIMEOUT, reading).await;
        ended.expect("the connection ends").unwrap();
        String::from_utf8(read).unwrap()
    }
}
