//! A server with a clock that tests move, and clients that share it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use http::Method;
use http_body_util::{BodyExt as _, Full};
use kennel_server::audit;
use kennel_server::limits::Timeouts;
use kennel_server::pki::Clock;
use kennel_server::pki::issue::Files;
use kennel_server::request::User;
use kennel_server::server::{Advertised, Config, EtcdConfig, Server};
use kennel_types::Timestamp;
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::time_provider::TimeProvider;
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::fixture::{Answer, request};

const TIMEOUT: Duration = Duration::from_secs(30);
/// So that tests need not wait.
const RECHECK: Duration = Duration::from_millis(50);
/// The end of a body in chunks.
pub(super) const END_OF_BODY: &str = "\r\n0\r\n\r\n";
pub(super) const DAY: i64 = 86_400;
const WHO: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

/// Moves only when a test says so. It starts now, because the age of files is compared with it.
#[derive(Clone, Debug)]
pub(super) struct MovedClock(Arc<AtomicI64>);

impl MovedClock {
    pub(super) fn now() -> Self {
        Self(Arc::new(AtomicI64::new(jiff::Timestamp::now().as_second())))
    }

    pub(super) fn seconds(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }

    pub(super) fn advance(&self, seconds: i64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }
}

impl TimeProvider for MovedClock {
    fn current_time(&self) -> Option<UnixTime> {
        let seconds = u64::try_from(self.seconds()).ok()?;
        Some(UnixTime::since_unix_epoch(Duration::from_secs(seconds)))
    }
}

/// How often the server looks at its certificates by itself, unless a test says otherwise: never.
const CHECK_INTERVAL: Duration = Duration::from_hours(1);

/// A certificate and its key.
pub(super) type Pair = (String, String);

pub(super) struct Fixture {
    pub(super) server: Server,
    pub(super) clock: MovedClock,
    pub(super) dir: TempDir,
}

impl Fixture {
    pub(super) async fn new() -> Self {
        Self::prepared(|_, _| {}).await
    }

    /// `prepare` may put files into the directory of certificates.
    pub(super) async fn prepared(prepare: impl FnOnce(&std::path::Path, &MovedClock)) -> Self {
        Self::checking_every(CHECK_INTERVAL, prepare).await
    }

    /// A server that looks at its certificates this often by itself.
    pub(super) async fn checking_every(
        interval: Duration,
        prepare: impl FnOnce(&std::path::Path, &MovedClock),
    ) -> Self {
        let (dir, clock) = (TempDir::new().unwrap(), MovedClock::now());
        std::fs::create_dir(dir.path().join("pki")).unwrap();
        prepare(&dir.path().join("pki"), &clock);
        Self::start(dir, clock, interval, None).await
    }

    /// A server whose objects are in this etcd.
    pub(super) async fn on_etcd(clock: MovedClock, etcd: EtcdConfig) -> Self {
        let dir = TempDir::new().unwrap();
        Self::start(dir, clock, CHECK_INTERVAL, Some(etcd)).await
    }

    async fn start(
        dir: TempDir,
        clock: MovedClock,
        interval: Duration,
        store: Option<EtcdConfig>,
    ) -> Self {
        let own = clock.clone();
        let config = Config {
            data_dir: dir.path().to_owned(),
            listen: "127.0.0.1:0".parse().unwrap(),
            advertised: Advertised::default(),
            tls_san: Vec::new(),
            service_cidr: "10.96.0.0/16".parse().unwrap(),
            token_file: None,
            token_key_days: 90,
            event_ttl: TIMEOUT,
            timeouts: Timeouts {
                recheck: RECHECK,
                ..Timeouts::default()
            },
            audit: audit::Options::off(),
            store,
            encryption_key_file: None,
            clock: Clock::new(move || Timestamp::from_secs(own.seconds())).checked_every(interval),
            storage_quota: kennel_server::quota::QUOTA_DEFAULT,
            backups: None,
            pod_security: kennel_server::api::Exemptions::default(),
        };
        let server = Server::start(config).await.unwrap();
        Self { server, clock, dir }
    }

    /// Stops the server, and starts it again after this change of its data directory.
    pub(super) async fn restarted_after(self, meanwhile: impl FnOnce(&std::path::Path)) -> Self {
        let Self { server, clock, dir } = self;
        server.stop().await;
        meanwhile(dir.path());
        Self::start(dir, clock, CHECK_INTERVAL, None).await
    }

    /// Moves the clock, and has the server look at its certificates.
    pub(super) async fn advance(&self, days: i64) {
        self.clock.advance(days * DAY);
        self.server.renew_certificates().await;
    }

    pub(super) fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.dir.path().join("pki").join(name)).unwrap()
    }

    pub(super) fn admin(&self) -> Pair {
        (self.file("admin.crt"), self.file("admin.key"))
    }

    /// A new client certificate of this cluster.
    pub(super) fn issue(&self, user: &str, group: &str) -> Pair {
        let pki = self.dir.path().join("pki");
        let own = self.clock.clone();
        let clock = Clock::new(move || Timestamp::from_secs(own.seconds()));
        let authority = kennel_server::pki::Authority::open(&pki, &clock).unwrap();
        let files = TempDir::new().unwrap();
        let issue = Files::new(&authority, files.path(), clock.now());
        issue.client("user", user, Some(group)).unwrap()
    }

    /// A client certificate of this many days, signed with the key of the authority by another program.
    pub(super) fn sign_elsewhere(&self, user: &str, group: &str, days: i64) -> Pair {
        let key = KeyPair::from_pem(&self.file("ca.key")).unwrap();
        let authority = Issuer::from_ca_cert_pem(&self.file("ca.crt"), key).unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        let subject = &mut params.distinguished_name;
        subject.push(DnType::OrganizationName, group);
        subject.push(DnType::CommonName, user);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let at = |seconds: i64| {
            let seconds = u64::try_from(self.clock.seconds() + seconds).unwrap();
            std::time::UNIX_EPOCH + Duration::from_secs(seconds)
        };
        (params.not_before, params.not_after) = (at(-300).into(), at(days * DAY).into());
        let key = KeyPair::generate().unwrap();
        let signed = params.signed_by(&key, &authority).unwrap();
        (signed.pem(), key.serialize_pem())
    }

    /// Connects, trusting these authorities.
    pub(super) async fn connect(
        &self,
        authorities: &str,
        shown: Option<&Pair>,
    ) -> Result<Connection, std::io::Error> {
        let all = |pem: &str| {
            let all = CertificateDer::pem_slice_iter(pem.as_bytes());
            all.collect::<Result<Vec<_>, _>>().unwrap()
        };
        let mut roots = RootCertStore::empty();
        for authority in all(authorities) {
            roots.add(authority).unwrap();
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_details(provider, Arc::new(self.clock.clone()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let config = match shown {
            Some((cert, key)) => {
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
                builder.with_client_auth_cert(all(cert), key).unwrap()
            }
            None => builder.with_no_client_auth(),
        };
        let socket = TcpStream::connect(self.server.address).await?;
        let name = ServerName::try_from("localhost").unwrap();
        let connector = TlsConnector::from(Arc::new(config));
        connector.connect(name, socket).await.map(Connection)
    }

    /// The status code of a request with this certificate, on a connection of its own.
    pub(super) async fn code(&self, shown: &Pair) -> u16 {
        let authorities = self.server.certificates.bundle.get();
        let mut connection = self.connect(&authorities, Some(shown)).await.unwrap();
        connection.who_am_i().await
    }

    /// A request from within, as administrator.
    pub(super) async fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> Answer {
        self.ask_as(method, path, body, User::master("tester"))
            .await
    }

    pub(super) async fn ask_as(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        user: User,
    ) -> Answer {
        let (parts, body) = request(method, path, body).into_parts();
        let request = http::Request::from_parts(parts, Full::new(body));
        let answer = kennel_server::http::answer(&self.server.api, request, user).await;
        let (parts, body) = answer.into_parts();
        Answer {
            code: parts.status.as_u16(),
            headers: parts.headers,
            body: body.collect().await.unwrap().to_bytes(),
        }
    }
}

/// An open connection.
pub(super) struct Connection(TlsStream<TcpStream>);

impl Connection {
    /// The server's own certificate.
    pub(super) fn leaf(&self) -> Vec<u8> {
        let chain = self.0.get_ref().1.peer_certificates().unwrap();
        chain.first().unwrap().to_vec()
    }

    /// Opens a watch of a day.
    pub(super) async fn watch(&mut self, path: &str) {
        let head =
            format!("GET {path}?watch=true&timeoutSeconds=86400 HTTP/1.1\r\nHost: kennel\r\n\r\n");
        self.0.write_all(head.as_bytes()).await.unwrap();
        self.0.flush().await.unwrap();
        self.until("\r\n\r\n").await;
    }

    /// Reads up to and including this text.
    pub(super) async fn until(&mut self, end: &str) {
        let mut read = Vec::new();
        let reading = async {
            while !read.ends_with(end.as_bytes()) {
                read.push(self.0.read_u8().await.unwrap());
            }
        };
        let ended = tokio::time::timeout(TIMEOUT, reading).await;
        assert!(
            ended.is_ok(),
            "no {end:?} in {}",
            String::from_utf8_lossy(&read)
        );
    }

    /// The status code of a request on this connection.
    pub(super) async fn who_am_i(&mut self) -> u16 {
        let head = format!(
            "POST {WHO} HTTP/1.1\r\nHost: kennel\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}"
        );
        self.0.write_all(head.as_bytes()).await.unwrap();
        self.0.flush().await.unwrap();
        let reading = async {
            let mut read = Vec::new();
            while !read.ends_with(b"\r\n\r\n") {
                read.push(self.0.read_u8().await.unwrap());
            }
            let head = String::from_utf8(read).unwrap().to_lowercase();
            let length = head.split("content-length: ").nth(1).unwrap();
            let length = length.split("\r\n").next().unwrap().parse().unwrap();
            let mut body = vec![0; length];
            self.0.read_exact(&mut body).await.unwrap();
            head.split(' ').nth(1).unwrap().parse().unwrap()
        };
        tokio::time::timeout(TIMEOUT, reading).await.unwrap()
    }
}
