//! A server with a socket, a node with an agent, and pods on it.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use kennel_server::api::Exemptions;
use kennel_server::audit;
use kennel_server::http::body::Body;
use kennel_server::limits::Timeouts;
use kennel_server::request::User;
use kennel_server::server::{Advertised, Config, Server};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::agent::Agent;
use super::client::{Client, TIMEOUT};
use crate::fixture::{Answer, NODES, PODS, request};

pub(super) struct Fixture {
    pub(super) server: Server,
    pub(super) agent: Agent,
    pub(super) dir: TempDir,
}

impl Fixture {
    /// A server, node `n` with its agent, and pod `p` on it, whose containers are `c`, `refused` and `unknown`;
    /// pod `one` has one container.
    pub(super) async fn new() -> Self {
        Self::with_certificate_for("n").await
    }

    /// The same, with an agent that has a certificate for this name.
    pub(super) async fn with_certificate_for(name: &str) -> Self {
        let dir = TempDir::new().unwrap();
        let server = start(&dir).await;
        let authority = server.certificates.authority.get();
        let agent = Agent::start(name, &authority.cert_pem, &authority.key_pem).await;
        let fixture = Self { server, agent, dir };
        fixture.node("n", fixture.agent.address.port()).await;
        let containers = ["c", "refused", "unknown"];
        let containers = containers.map(|name| json!({"name": name, "image": "i:1"}));
        fixture.pod("p", "n", json!(containers)).await;
        let container = json!([{"name": "c", "image": "i:1"}]);
        fixture.pod("one", "n", container.clone()).await;
        fixture.pod("loose", "", container).await;
        fixture
    }

    pub(super) async fn node(&self, name: &str, port: u16) {
        let node = json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
            "status": {
                "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
                "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
            },
        });
        self.post(NODES, &node).await;
    }

    pub(super) async fn pod(&self, name: &str, node: &str, containers: Value) {
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"containers": containers},
        });
        if !node.is_empty() {
            pod["spec"]["nodeName"] = node.into();
        }
        self.post(PODS, &pod).await;
    }

    async fn post(&self, path: &str, body: &Value) {
        let request = request(Method::POST, path, Some(body));
        self.send(request, User::master("tester")).await.is(201);
    }

    /// A request from within, as anybody.
    pub(super) async fn send(&self, request: Request<Bytes>, user: User) -> Answer {
        let (parts, body) = self.open(request, user).await;
        let body = tokio::time::timeout(TIMEOUT, body.collect()).await;
        Answer {
            code: parts.status.as_u16(),
            headers: parts.headers,
            body: body.expect("an answer ends").unwrap().to_bytes(),
        }
    }

    pub(super) async fn open(
        &self,
        request: Request<Bytes>,
        user: User,
    ) -> (http::response::Parts, Body) {
        let answer =
            kennel_server::http::answer(&self.server.api, request.map(Full::new), user).await;
        answer.into_parts()
    }

    pub(super) async fn get(&self, path: &str) -> Answer {
        let request = request(Method::GET, path, None);
        self.send(request, User::master("tester")).await
    }

    pub(super) async fn client(&self) -> Client {
        Client::open(&self.server).await
    }
}

async fn start(dir: &TempDir) -> Server {
    let log = audit::Target::File(dir.path().join("audit.log"));
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
            // So that tests need not wait.
            recheck: Duration::from_millis(50),
            ..Timeouts::default()
        },
        audit: audit::Options::to(log),
        store: None,
        encryption_key_file: None,
        storage_quota: kennel_server::quota::QUOTA_DEFAULT,
        backups: None,
        clock: kennel_server::pki::Clock::default(),
        pod_security: Exemptions::default(),
    };
    Server::start(config).await.unwrap()
}
