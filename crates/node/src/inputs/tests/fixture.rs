//! Test fixtures of this module: a pod, settings, and inputs with an API server.

use std::convert::Infallible;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kennel_testkit::inprocess::Server;
use kube::api::{GetParams, PostParams, Request};
use kube::client::Body;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::agent::{ApiAddress, Settings};
use crate::inputs::Inputs;
use crate::pods::{Origin, Pod};
use crate::runtime::About;

/// The pod `shop/web` with this spec.
pub(in crate::inputs) fn pod(spec: Value) -> Pod {
    let metadata = json!({"namespace": "shop", "name": "web", "uid": "u1"});
    let mut object = json!({"metadata": metadata});
    object["spec"] = spec;
    Pod::parse(object, Origin::Api).unwrap()
}

/// Settings with all files below `dir`.
pub(in crate::inputs) fn settings(dir: &Path) -> Settings {
    Settings {
        api: Some(ApiAddress {
            host: "192.0.2.5".into(),
            port: 6443,
        }),
        ..Settings::defaults("n1", IpAddr::from([10, 0, 0, 1]), dir)
    }
}

/// Inputs with an in-process API server.
pub(in crate::inputs) struct Fixture {
    pub(in crate::inputs) inputs: Inputs,
    pub(in crate::inputs) client: kube::Client,
    /// The paths and queries of the inputs' requests.
    pub(in crate::inputs) requests: Arc<Mutex<Vec<String>>>,
    pub(in crate::inputs) dir: TempDir,
    _server: Server,
}

impl Fixture {
    /// The API server has the namespace `shop`.
    pub(in crate::inputs) async fn open() -> Self {
        Self::with_images(true).await
    }

    /// For a runtime with or without images.
    pub(in crate::inputs) async fn with_images(images: bool) -> Self {
        Self::with(Server::open().await, images, |_| {}).await
    }

    /// With an agent that carries the traffic of services, and an API server at this address.
    pub(in crate::inputs) async fn with_proxy(address: &str) -> Self {
        let server = Server::open_at(address).await;
        Self::with(server, true, |settings| settings.service_proxy = true).await
    }

    /// The same, with an API server that does not answer the agent.
    pub(in crate::inputs) async fn with_unreachable_api() -> Self {
        let mut fixture = Self::with_proxy("192.0.2.5:6443").await;
        let mut settings = settings(fixture.dir.path());
        settings.service_proxy = true;
        let refuse = |_: http::Request<Body>| async {
            Err::<http::Response<Body>, _>(std::io::Error::from(
                std::io::ErrorKind::ConnectionRefused,
            ))
        };
        let client = kube::Client::new(tower::service_fn(refuse), "default");
        fixture.inputs = Inputs::new(client, Arc::new(settings), about(true));
        fixture
    }

    async fn with(server: Server, images: bool, change: impl Fn(&mut Settings)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (requests, client) = (Arc::default(), server.client("admin"));
        let recording = recording(server.client("node"), Arc::clone(&requests));
        let mut settings = settings(dir.path());
        change(&mut settings);
        let fixture = Self {
            inputs: Inputs::new(recording, Arc::new(settings), about(images)),
            client,
            requests,
            dir,
            _server: server,
        };
        let namespace =
            json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "shop"}});
        fixture.create("namespaces", namespace).await;
        fixture
    }

    /// Replaces the inputs, as a restart of the agent does.
    pub(in crate::inputs) fn restart(&mut self) {
        let settings = Arc::new(settings(self.dir.path()));
        self.inputs = Inputs::new(self.client.clone(), settings, about(true));
    }

    /// `path` is below `/api/v1`.
    pub(in crate::inputs) async fn create(&self, path: &str, object: Value) -> Value {
        let body = object.to_string().into_bytes();
        let request = Request::new(format!("/api/v1/{path}"));
        let request = request.create(&PostParams::default(), body).unwrap();
        self.client.request(request).await.unwrap()
    }

    /// Creates an object in the namespace `shop`, and returns it.
    pub(in crate::inputs) async fn add(&self, plural: &str, object: Value) -> Value {
        self.create(&format!("namespaces/shop/{plural}"), object)
            .await
    }

    pub(in crate::inputs) async fn add_config(&self, name: &str, data: Value) {
        let object = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, "data": data});
        self.add("configmaps", object).await;
    }

    pub(in crate::inputs) async fn add_secret(&self, name: &str, data: Value) {
        let object = json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": name}, "stringData": data});
        self.add("secrets", object).await;
    }

    /// Waits until the API server has an object in the namespace `shop`.
    pub(in crate::inputs) async fn wait_until_exists(&self, plural: &str, name: &str) {
        let path = kennel_client::api::core_path("shop", plural);
        let exists = async || {
            let request = Request::new(&path)
                .get(name, &GetParams::default())
                .unwrap();
            self.client.request::<Value>(request).await.is_ok()
        };
        let wait = async {
            while !exists().await {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(20), wait).await;
        assert!(waited.is_ok(), "{plural} {name}");
    }

    /// Merge-patches an object in the namespace `shop`.
    pub(in crate::inputs) async fn patch(&self, plural: &str, name: &str, patch: Value) {
        let path = kennel_client::api::core_path("shop", plural);
        let patched = kennel_client::api::merge(&self.client, &path, name, None, &patch);
        patched.await.unwrap();
    }

    /// A file below the directory of the pod `u1`.
    pub(in crate::inputs) fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join("data/pods/u1").join(path)
    }

    /// Reads a file of a volume of the pod `u1`.
    pub(in crate::inputs) fn read(&self, path: &str) -> String {
        let path = self.path("volumes").join(path);
        std::fs::read_to_string(&path)
            .unwrap_or_else(|error| format!("{}: {error}", path.display()))
    }

    /// Waits until a file of a volume of the pod `u1` has this content.
    pub(in crate::inputs) async fn wait_for(&self, path: &str, expected: &str) {
        let wait = async {
            while self.read(path) != expected {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(20), wait).await;
        assert!(waited.is_ok(), "{path} has: {}", self.read(path));
    }
}

impl Drop for Fixture {
    /// Unmounts everything, even after a failed test.
    fn drop(&mut self) {
        for pod in std::fs::read_dir(self.dir.path().join("data/pods"))
            .into_iter()
            .flatten()
        {
            let removed = pod.and_then(|pod| crate::inputs::volumes::remove(&pod.path()));
            if let Err(error) = removed {
                println!("not cleaned up: {error}");
            }
        }
    }
}

/// A client that records requests.
fn recording(client: kube::Client, requests: Arc<Mutex<Vec<String>>>) -> kube::Client {
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let (client, uri) = (client.clone(), request.uri().to_string());
        requests.lock().unwrap().push(uri);
        async move { client.send(request).await }
    });
    kube::Client::new(service, "default")
}

/// Whether the test runs as root; if not, it counts as skipped.
pub(in crate::inputs) fn root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        kennel_test_support::skip("needs root");
    }
    root
}

/// An API that issues the tokens `t1`, `t2`, … for 1000 seconds each, unless it is `unavailable`.
pub(in crate::inputs) fn token_api(
    issued: Arc<AtomicU32>,
    unavailable: Arc<AtomicBool>,
) -> kube::Client {
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let path = request.uri().path().to_owned();
        assert_eq!(
            path,
            "/api/v1/namespaces/shop/serviceaccounts/default/token"
        );
        let number = issued.fetch_add(1, Ordering::SeqCst) + 1;
        // By a clock that differs from ours.
        let expires = "2020-01-01T00:00:00Z";
        let (code, body) = if unavailable.load(Ordering::SeqCst) {
            let status = json!({"kind": "Status", "code": 500, "message": "away", "reason": "InternalError"});
            (500, status)
        } else {
            let token = format!("t{number}");
            (
                201,
                json!({"spec": {"expirationSeconds": 1000},
                    "status": {"token": token, "expirationTimestamp": expires}}),
            )
        };
        let answer = http::Response::builder().status(code);
        let answer = answer
            .body(Body::from(body.to_string().into_bytes()))
            .unwrap();
        async move { Ok::<_, Infallible>(answer) }
    });
    kube::Client::new(service, "default")
}

pub(in crate::inputs) fn about(images: bool) -> About {
    About {
        name: "test".into(),
        version: "1".into(),
        images,
    }
}
