//! A test agent: TLS with a certificate of the cluster's CA, required client certificates, a few paths.

use std::net::SocketAddr;
use std::sync::Arc;

use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ResolvesServerCertUsingSni, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// A request that the agent received.
#[derive(Debug)]
pub(super) struct Seen {
    /// The name in the client's certificate.
    pub(super) user: String,
    /// The head of the request.
    pub(super) head: String,
}

/// A running agent.
pub(super) struct Agent {
    pub(super) address: SocketAddr,
    pub(super) seen: mpsc::Receiver<Seen>,
    /// Followed logs continue when this is set.
    pub(super) goes_on: watch::Sender<bool>,
}

/// Of a node that uses half a core, with the pods `p` and `one`. Nothing is known of the pod `new`.
pub(super) const SUMMARY: &str = r#"{
    "node": {"nodeName": "n",
        "cpu": {"time": "2026-01-02T03:04:05Z", "usageNanoCores": 500000000, "windowNanoSeconds": 12500000000},
        "memory": {"time": "2026-01-02T03:04:05Z", "workingSetBytes": 1048576}},
    "pods": [
        {"podRef": {"name": "p", "namespace": "default", "uid": "x"}, "containers": [
            {"name": "c", "cpu": {"time": "2026-01-02T03:04:05Z", "usageNanoCores": 1500000},
                "memory": {"workingSetBytes": 1500}},
            {"name": "refused", "cpu": {"time": "2026-01-02T03:04:04Z", "usageNanoCores": 1},
                "memory": {"workingSetBytes": 2048}}]},
        {"podRef": {"name": "one", "namespace": "default", "uid": "x"}, "containers": [
            {"name": "c", "cpu": {"time": "2026-01-02T03:04:05Z", "usageNanoCores": 0},
                "memory": {"workingSetBytes": 0}}]},
        {"podRef": {"name": "new", "namespace": "default", "uid": "x"}, "containers": []}]}"#;

/// More than any test sends.
const REQUESTS_MAX: usize = 64;

impl Agent {
    /// Starts an agent with a certificate for this name.
    pub(super) async fn start(name: &str, ca_pem: &str, ca_key_pem: &str) -> Self {
        Self::serve(settings(name, ca_pem, ca_key_pem)).await
    }

    /// Starts an agent that has no certificate yet.
    pub(super) async fn without_certificate() -> Self {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let settings = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(ResolvesServerCertUsingSni::new()));
        Self::serve(settings).await
    }

    async fn serve(settings: ServerConfig) -> Self {
        let acceptor = TlsAcceptor::from(Arc::new(settings));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, seen) = mpsc::channel(REQUESTS_MAX);
        let (goes_on, going_on) = watch::channel(false);
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (acceptor, tell, going_on) = (acceptor.clone(), tell.clone(), going_on.clone());
                tokio::spawn(async move {
                    // A client that does not trust the certificate closes the connection.
                    if let Ok(stream) = acceptor.accept(socket).await {
                        answer(stream, tell, going_on).await;
                    }
                });
            }
        });
        Self {
            address,
            seen,
            goes_on,
        }
    }
}

fn settings(name: &str, ca_pem: &str, ca_key_pem: &str) -> ServerConfig {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let authority = KeyPair::from_pem(ca_key_pem).unwrap();
    let issuer = Issuer::from_ca_cert_pem(ca_pem, authority).unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap();
    let mut roots = RootCertStore::empty();
    let ca = CertificateDer::from_pem_slice(ca_pem.as_bytes()).unwrap();
    roots.add(ca).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let clients = WebPkiClientVerifier::builder_with_provider(roots.into(), Arc::clone(&provider));
    ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(clients.build().unwrap())
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap(),
        )
        .unwrap()
}

async fn answer(
    mut stream: TlsStream<TcpStream>,
    tell: mpsc::Sender<Seen>,
    mut going_on: watch::Receiver<bool>,
) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = stream.read_u8().await else {
            return;
        };
        head.push(byte);
    }
    let head = String::from_utf8(head).unwrap();
    let user = common_name(&stream);
    let target = head.split(' ').nth(1).unwrap().to_owned();
    let seen = Seen {
        user,
        head: head.clone(),
    };
    tell.try_send(seen).unwrap();
    if target.contains("follow=true") {
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        say(&mut stream, head).await;
        say(&mut stream, "6\r\nfirst\n\r\n").await;
        going_on.wait_for(|goes_on| *goes_on).await.unwrap();
        say(&mut stream, "7\r\nsecond\n\r\n0\r\n\r\n").await;
    } else if target.starts_with("/stats/summary") {
        say(&mut stream, &whole(200, SUMMARY)).await;
    } else if target.ends_with("/refused") {
        let words = "container \"refused\" in pod \"p\" is waiting to start: ContainerCreating";
        say(&mut stream, &whole(400, words)).await;
    } else if target.ends_with("/unknown") {
        say(&mut stream, &whole(404, "nothing here")).await;
    } else if head.to_lowercase().contains("upgrade: ") && !target.contains("command=refuse") {
        echo(stream, &head).await;
    } else {
        say(
            &mut stream,
            &whole(200, &format!("you asked for {target}\n")),
        )
        .await;
    }
}

/// Upgrades to the requested protocol and echoes; a line `bye` ends it.
async fn echo(mut stream: TlsStream<TcpStream>, head: &str) {
    let protocol = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("upgrade").then_some(value)
    });
    let protocol = protocol.unwrap();
    let answer = format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: {protocol}\r\n\
         X-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\nhello from the agent\n"
    );
    say(&mut stream, &answer).await;
    let mut buffer = [0; 64];
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        stream.write_all(&buffer[..read]).await.unwrap();
        stream.flush().await.unwrap();
        if buffer[..read].ends_with(b"bye\n") {
            break;
        }
    }
    // The other end may be gone.
    let _gone = stream.shutdown().await;
}

fn whole(code: u16, words: &str) -> String {
    let length = words.len();
    format!("HTTP/1.1 {code} Said\r\ncontent-length: {length}\r\nx-agent: mine\r\n\r\n{words}")
}

async fn say(stream: &mut TlsStream<TcpStream>, words: &str) {
    stream.write_all(words.as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
}

fn common_name(stream: &TlsStream<TcpStream>) -> String {
    let certificates = stream.get_ref().1.peer_certificates().unwrap();
    let (_, certificate) = X509Certificate::from_der(&certificates[0]).unwrap();
    let name = certificate.subject().iter_common_name().next().unwrap();
    name.as_str().unwrap().to_owned()
}
