//! A server to talk to, and the words tests use for it.

mod answer;
mod objects;

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::BodyExt as _;
use kennel_server::audit;
use kennel_server::backend::Backend;
use kennel_server::http::body::Body;
use kennel_server::request::{Caller, User};
use kennel_store::Options;
use serde_json::Value;
use tempfile::TempDir;

pub(crate) use answer::{Answer, Watch};
pub(crate) use objects::{daemonset, map, names, node, pod, version};

pub(crate) const MERGE: &str = "application/merge-patch+json";
pub(crate) const JSON_PATCH: &str = "application/json-patch+json";
pub(crate) const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// Config maps of the default namespace: the plainest objects there are.
pub(crate) const MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub(crate) const PODS: &str = "/api/v1/namespaces/default/pods";
pub(crate) const DAEMONSETS: &str = "/apis/apps/v1/namespaces/default/daemonsets";
pub(crate) const NODES: &str = "/api/v1/nodes";
pub(crate) const NAMESPACES: &str = "/api/v1/namespaces";

/// Long enough for any machine: only a broken server makes a test wait this long.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server of its own for one test.
pub(crate) struct Kit {
    server: Backend,
    dir: TempDir,
}

impl Kit {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    /// A server whose store is opened with other options.
    pub(crate) async fn with(change: impl FnOnce(&mut Options)) -> Self {
        let dir = TempDir::new().unwrap();
        let mut options = Options::new(dir.path());
        change(&mut options);
        let server = open(options).await;
        Self { server, dir }
    }

    /// A server with an audit log at `audit.log` in its directory.
    pub(crate) async fn audited() -> Self {
        let dir = TempDir::new().unwrap();
        let audit = audit::Options::to(audit::Target::File(dir.path().join("audit.log")));
        let (address, cidr) = ("192.0.2.1:6443".parse(), "10.96.0.0/16".parse());
        let options = Options::new(dir.path());
        let server = Backend::open(options, address.unwrap(), cidr.unwrap(), &audit).await;
        let server = server.unwrap_or_else(|error| panic!("the server does not open: {error}"));
        Self { server, dir }
    }

    /// Closes the server and returns its audit log, a value per line.
    pub(crate) async fn into_audit_log(self) -> Vec<Value> {
        self.server.close().await;
        let text = std::fs::read_to_string(self.dir.path().join("audit.log")).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        lines.collect()
    }

    /// The same data under a new server.
    pub(crate) async fn reopen(self) -> Self {
        self.server.close().await;
        let server = open(Options::new(self.dir.path())).await;
        Self {
            server,
            dir: self.dir,
        }
    }

    /// Any request.
    pub(crate) async fn send(&self, request: Request<Bytes>) -> Answer {
        self.send_as(request, User::master("tester")).await
    }

    pub(crate) async fn send_as(
        &self,
        request: Request<Bytes>,
        caller: impl Into<Caller>,
    ) -> Answer {
        let (parts, body) = self.open_stream(request, caller).await;
        let body = tokio::time::timeout(PATIENCE, body.collect()).await;
        let body = body.expect("an answer ends").unwrap().to_bytes();
        Answer {
            code: parts.status.as_u16(),
            headers: parts.headers,
            body,
        }
    }

    /// Sends a request and goes away at once. Was that before it was answered? The store's writer has a thread of
    /// its own, which may be done before we have looked once.
    pub(crate) fn send_and_leave(&self, request: Request<Bytes>) -> bool {
        let answer = self.open_stream(request, User::master("tester"));
        // Polled once, so that the request is under way.
        futures_util::FutureExt::now_or_never(answer).is_none()
    }

    /// The code of an answer whose body may never end.
    pub(crate) async fn code_as(&self, request: Request<Bytes>, user: User) -> u16 {
        self.open_stream(request, user).await.0.status.as_u16()
    }

    async fn open_stream(
        &self,
        request: Request<Bytes>,
        caller: impl Into<Caller>,
    ) -> (http::response::Parts, Body) {
        let (parts, body) = request.into_parts();
        let request = Request::from_parts(parts, http_body_util::Full::new(body));
        let answer = kennel_server::http::answer(&self.server.api, request, caller);
        let answer = tokio::time::timeout(PATIENCE, answer).await;
        answer.expect("headers come in time").into_parts()
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(request(Method::GET, path, None)).await
    }

    /// A read in another form, as its `Accept` header names it.
    pub(crate) async fn get_as(&self, path: &str, accept: &str) -> Answer {
        let mut request = request(Method::GET, path, None);
        let accept = accept.parse().unwrap();
        request.headers_mut().insert(header::ACCEPT, accept);
        self.send(request).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(request(Method::POST, path, Some(body))).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Answer {
        self.send(request(Method::PUT, path, Some(body))).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.send(request(Method::DELETE, path, None)).await
    }

    pub(crate) async fn delete_with(&self, path: &str, options: &Value) -> Answer {
        self.send(request(Method::DELETE, path, Some(options)))
            .await
    }

    pub(crate) async fn patch(&self, kind: &str, path: &str, body: &Value) -> Answer {
        self.patch_text(kind, path, &body.to_string()).await
    }

    pub(crate) async fn patch_text(&self, kind: &str, path: &str, body: &str) -> Answer {
        let mut request = Request::new(Bytes::from(body.to_owned()));
        *request.method_mut() = Method::PATCH;
        *request.uri_mut() = path.parse().unwrap();
        let kind = kind.parse().unwrap();
        request.headers_mut().insert(header::CONTENT_TYPE, kind);
        self.send(request).await
    }

    /// A watch; `path` says the rest of its query.
    pub(crate) async fn watch(&self, path: &str) -> Watch {
        self.watch_as(path, "application/json").await
    }

    pub(crate) async fn watch_as(&self, path: &str, accept: &str) -> Watch {
        let join = if path.contains('?') { '&' } else { '?' };
        let mut request = request(Method::GET, &format!("{path}{join}watch=true"), None);
        let accept = accept.parse().unwrap();
        request.headers_mut().insert(header::ACCEPT, accept);
        let (parts, body) = self.open_stream(request, User::master("watcher")).await;
        let mut watch = Watch::new(body);
        if !parts.status.is_success() {
            let refused = watch.next().await;
            panic!("the watch was refused: {refused:?}");
        }
        watch
    }

    /// The answer to a watch that is refused at once.
    pub(crate) async fn watch_refused(&self, path: &str) -> Answer {
        self.get(&format!("{path}&watch=true")).await
    }

    /// The present revision, as a list says it.
    pub(crate) async fn revision(&self) -> u64 {
        version(&self.get(&format!("{NODES}?limit=1")).await.ok())
    }

    /// Creates a config map with this data and returns it.
    pub(crate) async fn map(&self, name: &str, data: &Value) -> Value {
        self.post(MAPS, &map(name, data)).await.is(201)
    }

    /// Creates a pod, bound to a node if one is named.
    pub(crate) async fn pod(&self, name: &str, node: &str) -> Value {
        let mut pod = pod(name);
        if !node.is_empty() {
            pod["spec"]["nodeName"] = node.into();
        }
        self.post(PODS, &pod).await.is(201)
    }
}

async fn open(options: Options) -> Backend {
    let address = "192.0.2.1:6443".parse().unwrap();
    let opened = Backend::open(
        options,
        address,
        "10.96.0.0/16".parse().unwrap(),
        &audit::Options::off(),
    )
    .await;
    opened.unwrap_or_else(|error| panic!("the server does not open: {error}"))
}

/// A request with a JSON body, or without one.
pub(crate) fn request(method: Method, path: &str, body: Option<&Value>) -> Request<Bytes> {
    let bytes = body.map(|b| Bytes::from(b.to_string())).unwrap_or_default();
    let mut request = Request::new(bytes);
    *request.method_mut() = method;
    *request.uri_mut() = path.parse().unwrap();
    if body.is_some() {
        let json = "application/json".parse().unwrap();
        request.headers_mut().insert(header::CONTENT_TYPE, json);
    }
    request
}
