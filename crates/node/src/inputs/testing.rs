//! What tests of this room share: a pod, settings, a node with an API of its own.

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

use super::Inputs;
use crate::agent::{ApiAddress, Settings};
use crate::pods::{Origin, Pod};
use crate::runtime::About;

/// The pod `shop/web` with this spec.
pub(super) fn pod(spec: Value) -> Pod {
    let metadata = json!({"namespace": "shop", "name": "web", "uid": "u1"});
    let mut object = json!({"metadata": metadata});
    object["spec"] = spec;
    Pod::parse(object, Origin::Api).unwrap()
}

/// Settings of a node that keeps its things in `dir`.
pub(super) fn settings(dir: &Path) -> Settings {
    Settings {
        api: Some(ApiAddress {
            host: "192.0.2.5".into(),
            port: 6443,
        }),
        ..Settings::defaults("n1", IpAddr::from([10, 0, 0, 1]), dir)
    }
}

/// A node and the API that it asks, with what was asked.
pub(super) struct World {
    pub(super) inputs: Inputs,
    pub(super) client: kube::Client,
    /// The paths and queries of requests of the node.
    pub(super) asked: Arc<Mutex<Vec<String>>>,
    pub(super) dir: TempDir,
    _server: Server,
}

impl World {
    /// With the namespace `shop`.
    pub(super) async fn open() -> Self {
        Self::with_images(true).await
    }

    /// The same, on a runtime with images or without.
    pub(super) async fn with_images(images: bool) -> Self {
        let (server, dir) = (Server::open().await, tempfile::tempdir().unwrap());
        let (asked, client) = (Arc::default(), server.client("admin"));
        let recording = recording(server.client("node"), Arc::clone(&asked));
        let world = Self {
            inputs: Inputs::new(recording, Arc::new(settings(dir.path())), about(images)),
            client,
            asked,
            dir,
            _server: server,
        };
        let namespace =
            json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "shop"}});
        world.create("namespaces", namespace).await;
        world
    }

    /// The agent ends, and another one begins.
    pub(super) fn restart(&mut self) {
        let settings = Arc::new(settings(self.dir.path()));
        self.inputs = Inputs::new(self.client.clone(), settings, about(true));
    }

    /// Creates an object outside namespaces.
    async fn create(&self, path: &str, object: Value) -> Value {
        let body = object.to_string().into_bytes();
        let request = Request::new(format!("/api/v1/{path}"));
        let request = request.create(&PostParams::default(), body).unwrap();
        self.client.request(request).await.unwrap()
    }

    /// Creates an object in the namespace `shop`; says what came of it.
    pub(super) async fn add(&self, plural: &str, object: Value) -> Value {
        self.create(&format!("namespaces/shop/{plural}"), object)
            .await
    }

    /// Creates a ConfigMap with this data.
    pub(super) async fn add_config(&self, name: &str, data: Value) {
        let object = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, "data": data});
        self.add("configmaps", object).await;
    }

    /// Creates a secret with this text.
    pub(super) async fn add_secret(&self, name: &str, data: Value) {
        let object = json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": name}, "stringData": data});
        self.add("secrets", object).await;
    }

    /// Waits until the server has made an object of the namespace `shop` by itself.
    pub(super) async fn wait_until_there(&self, plural: &str, name: &str) {
        let path = kennel_client::api::core_path("shop", plural);
        let there = async || {
            let request = Request::new(&path)
                .get(name, &GetParams::default())
                .unwrap();
            self.client.request::<Value>(request).await.is_ok()
        };
        let wait = async {
            while !there().await {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(20), wait).await;
        assert!(waited.is_ok(), "{plural} {name}");
    }

    /// Merges into an object of the namespace `shop`.
    pub(super) async fn patch(&self, plural: &str, name: &str, patch: Value) {
        let path = kennel_client::api::core_path("shop", plural);
        let patched = kennel_client::api::merge(&self.client, &path, name, None, &patch);
        patched.await.unwrap();
    }

    /// A file below the directory of the pod `u1`.
    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join("data/pods/u1").join(path)
    }

    /// A file of a volume of the pod `u1`.
    pub(super) fn read(&self, path: &str) -> String {
        let path = self.path("volumes").join(path);
        std::fs::read_to_string(&path)
            .unwrap_or_else(|error| format!("{}: {error}", path.display()))
    }

    /// Waits until a file of a volume of the pod `u1` says so.
    pub(super) async fn wait_for(&self, path: &str, expected: &str) {
        let wait = async {
            while self.read(path) != expected {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(20), wait).await;
        assert!(waited.is_ok(), "{path} says: {}", self.read(path));
    }
}

impl Drop for World {
    /// Nothing stays mounted, also when a test has failed.
    fn drop(&mut self) {
        for pod in std::fs::read_dir(self.dir.path().join("data/pods"))
            .into_iter()
            .flatten()
        {
            let removed = pod.and_then(|pod| super::volumes::remove(&pod.path()));
            if let Err(error) = removed {
                println!("not cleaned up: {error}");
            }
        }
    }
}

/// A client that writes down what is asked.
fn recording(client: kube::Client, asked: Arc<Mutex<Vec<String>>>) -> kube::Client {
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let (client, what) = (client.clone(), request.uri().to_string());
        asked.lock().unwrap().push(what);
        async move { client.send(request).await }
    });
    kube::Client::new(service, "default")
}

/// Whether the test runs as root; if not, it counts as skipped.
pub(super) fn root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        kennel_test_support::skip("needs root");
    }
    root
}

/// An API that gives out the tokens `t1`, `t2`, … for 1000 seconds each, unless it is `away`.
pub(super) fn token_api(given: Arc<AtomicU32>, away: Arc<AtomicBool>) -> kube::Client {
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let path = request.uri().path().to_owned();
        assert_eq!(
            path,
            "/api/v1/namespaces/shop/serviceaccounts/default/token"
        );
        let number = given.fetch_add(1, Ordering::SeqCst) + 1;
        // By a clock that is far from ours.
        let expires = "2020-01-01T00:00:00Z";
        let (code, body) = if away.load(Ordering::SeqCst) {
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

/// A runtime with images of its own or without.
pub(super) fn about(images: bool) -> About {
    About {
        name: "test".into(),
        version: "1".into(),
        images,
    }
}
