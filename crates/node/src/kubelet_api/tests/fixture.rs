//! A fixture: the server with one pod behind a real TLS socket, a fake API server that knows one user, and a client.

use std::fs;
use std::io::Write as _;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use kennel_core::pod::{Exit, Observed, Run, Sandbox, State};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::super::{ServerContext, serve};
use super::stub_runtime::StubRuntime;
use crate::agent::{AgentHealth, Paths, Settings};
use crate::pods::{CachedPod, Origin, Pod, PodCache};

pub(super) const DEADLINE: Duration = Duration::from_secs(10);

/// See the [module](self).
pub(super) struct Fixture {
    pub(super) address: std::net::SocketAddr,
    authority: Authority,
    pub(super) runtime: Arc<StubRuntime>,
    pub(super) pod_cache: Arc<PodCache>,
    /// Number of `SubjectAccessReview`s.
    pub(super) reviews: Arc<AtomicUsize>,
    pub(super) stop: CancellationToken,
    dir: tempfile::TempDir,
    _stop: DropGuard,
}

/// The CA of the server and the clients.
struct Authority {
    der: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "ca");
        let der = params.self_signed(&key).unwrap().der().clone();
        let issuer = Issuer::new(params, key);
        Self { der, issuer }
    }

    fn roots(&self) -> Arc<RootCertStore> {
        let mut roots = RootCertStore::empty();
        roots.add(self.der.clone()).unwrap();
        Arc::new(roots)
    }

    fn issue(&self, name: &str) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        (vec![certificate.der().clone()], key)
    }

    fn server(&self) -> Arc<ServerConfig> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let clients =
            WebPkiClientVerifier::builder_with_provider(self.roots(), Arc::clone(&provider))
                .allow_unauthenticated()
                .build()
                .unwrap();
        let (chain, key) = self.issue("n1");
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(clients)
            .with_single_cert(chain, key);
        Arc::new(config.unwrap())
    }

    /// A client with a certificate of this name, if any.
    fn client(&self, name: Option<&str>) -> Arc<ClientConfig> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(self.roots());
        Arc::new(match name {
            Some(name) => {
                let (chain, key) = self.issue(name);
                builder.with_client_auth_cert(chain, key).unwrap()
            }
            None => builder.with_no_client_auth(),
        })
    }
}

/// A fake API server that accepts the token `good` and lets `boss` do everything.
fn api(reviews: Arc<AtomicUsize>) -> kube::Client {
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        let reviews = Arc::clone(&reviews);
        async move {
            let path = request.uri().path().to_owned();
            let body = request.into_body().collect().await.unwrap().to_bytes();
            let review: Value = serde_json::from_slice(&body).unwrap();
            let status = if path.ends_with("tokenreviews") {
                let known = review["spec"]["token"] == "good";
                json!({"authenticated": known, "user": {"username": "boss"}})
            } else {
                reviews.fetch_add(1, Ordering::Relaxed);
                json!({"allowed": review["spec"]["user"] == "boss"})
            };
            let body = json!({"status": status}).to_string().into_bytes();
            Ok::<_, std::convert::Infallible>(Response::new(kube::client::Body::from(body)))
        }
    });
    kube::Client::new(service, "default")
}

fn settings(dir: &Path) -> Settings {
    Settings::defaults("n1", IpAddr::from([10, 0, 0, 1]), dir)
}

/// The pod `ns/p`: container `c` runs for the second time, `w` waits.
pub(super) fn cached_pod() -> CachedPod {
    let object = json!({
        "metadata": {"namespace": "ns", "name": "p", "uid": "u"},
        "spec": {"containers": [{"name": "c", "image": "i"}, {"name": "w", "image": "i"}]},
    });
    let run = |attempt: u32, state: State| Run {
        name: "c".to_owned(),
        id: format!("c{attempt}"),
        attempt,
        sandbox: "s".to_owned(),
        image: "i".to_owned(),
        image_id: String::new(),
        state,
    };
    CachedPod {
        pod: Arc::new(Pod::parse(object, Origin::Api).unwrap()),
        observed: Observed {
            sandbox: Some(Sandbox {
                id: "s".to_owned(),
                ready: true,
                ..Sandbox::default()
            }),
            runs: vec![
                run(
                    1,
                    State::Running {
                        started_at: kennel_types::Timestamp::EPOCH,
                    },
                ),
                run(0, State::Exited(Exit::default())),
            ],
        },
        status: json!({"containerStatuses": [
            {
                "name": "c",
                "restartCount": 1,
                "containerID": "fake://c1",
                "state": {"running": {}},
                "lastState": {"terminated": {"containerID": "fake://c0"}},
            },
            {"name": "w", "state": {"waiting": {"reason": "ContainerCreating"}}, "lastState": {}},
        ]}),
    }
}

impl Fixture {
    pub(super) async fn start() -> Self {
        Self::with_health(AgentHealth::default()).await
    }

    pub(super) async fn with_health(health: AgentHealth) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (authority, reviews) = (Authority::new(), Arc::new(AtomicUsize::new(0)));
        let (runtime, pod_cache) = (
            Arc::new(StubRuntime::default()),
            Arc::new(PodCache::default()),
        );
        pod_cache.set(cached_pod());
        let context = ServerContext {
            runtime: Arc::clone(&runtime) as _,
            pod_cache: Arc::clone(&pod_cache),
            settings: Arc::new(settings(dir.path())),
            client: Some(api(Arc::clone(&reviews))),
            health: Arc::new(health),
            metrics: Vec::new(),
        };
        let stop = CancellationToken::new();
        let tls = tokio::sync::watch::channel(authority.server()).1;
        tokio::spawn(serve(listener, tls, context, stop.clone()));
        Self {
            address,
            authority,
            runtime,
            pod_cache,
            reviews,
            dir,
            _stop: stop.clone().drop_guard(),
            stop,
        }
    }

    /// Appends a line to the log of a run.
    pub(super) fn log(&self, attempt: u32, text: &str) {
        let cached = cached_pod();
        let log = settings(self.dir.path()).paths.pod_logs(&cached.pod.id);
        let log = log.join(Paths::log("c", attempt));
        fs::create_dir_all(log.parent().unwrap()).unwrap();
        let mut file = fs::File::options()
            .append(true)
            .create(true)
            .open(log)
            .unwrap();
        writeln!(file, "2026-01-01T00:00:00Z stdout F {text}").unwrap();
    }

    /// Sends a request with a client certificate of this name, if any.
    pub(super) async fn send(
        &self,
        name: Option<&str>,
        request: Request<Empty<Bytes>>,
    ) -> Response<Incoming> {
        let connector = TlsConnector::from(self.authority.client(name));
        let socket = TcpStream::connect(self.address).await.unwrap();
        let node = ServerName::try_from("n1").unwrap();
        let stream = connector.connect(node, socket).await.unwrap();
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .unwrap();
        tokio::spawn(connection.with_upgrades());
        let response = tokio::time::timeout(DEADLINE, sender.send_request(request)).await;
        response.expect("in time").unwrap()
    }

    /// GET as `boss`.
    pub(super) async fn get(&self, path: &str) -> (StatusCode, String) {
        self.get_as(Some("boss"), path).await
    }

    pub(super) async fn get_as(&self, name: Option<&str>, path: &str) -> (StatusCode, String) {
        let request = Request::get(path).body(Empty::new()).unwrap();
        read(self.send(name, request).await).await
    }

    /// Upgrades to streams as `boss`.
    pub(super) async fn upgrade(&self, path: &str, headers: &[(&str, &str)]) -> TokioIo<Upgraded> {
        let mut request = Request::builder().method(Method::GET).uri(path);
        request = request.header("connection", "Upgrade");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = self
            .send(Some("boss"), request.body(Empty::new()).unwrap())
            .await;
        assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS);
        TokioIo::new(hyper::upgrade::on(response).await.unwrap())
    }
}

/// The status and the whole body.
pub(super) async fn read(response: Response<Incoming>) -> (StatusCode, String) {
    let status = response.status();
    let body = tokio::time::timeout(DEADLINE, response.into_body().collect()).await;
    let body = body.expect("in time").unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}
