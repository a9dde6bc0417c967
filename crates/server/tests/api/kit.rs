//! A server to talk to, and the words tests use for it.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, header};
use http_body_util::BodyExt as _;
use kennel_server::http::body::Body;
use kennel_server::http::connection;
use kennel_server::inprocess::InProcess;
use kennel_server::request::User;
use kennel_store::Options;
use serde_json::{Value, json};
use tempfile::TempDir;

pub const MERGE: &str = "application/merge-patch+json";
pub const JSON_PATCH: &str = "application/json-patch+json";
pub const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// Config maps of the default namespace: the plainest objects there are.
pub const MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub const PODS: &str = "/api/v1/namespaces/default/pods";
pub const DAEMONSETS: &str = "/apis/apps/v1/namespaces/default/daemonsets";
pub const NODES: &str = "/api/v1/nodes";
pub const NAMESPACES: &str = "/api/v1/namespaces";

/// Long enough for any machine: only a broken server makes a test wait this long.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server of its own for one test.
pub struct Kit {
    server: InProcess,
    dir: TempDir,
}

impl Kit {
    pub async fn new() -> Self {
        Self::with(|_| {}).await
    }

    /// A server whose store is opened with other options.
    pub async fn with(change: impl FnOnce(&mut Options)) -> Self {
        let dir = TempDir::new().unwrap();
        let mut options = Options::new(dir.path());
        change(&mut options);
        let server = open(options).await;
        Self { server, dir }
    }

    /// The same data under a new server.
    pub async fn reopen(self) -> Self {
        self.server.close().await;
        let server = open(Options::new(self.dir.path())).await;
        Self {
            server,
            dir: self.dir,
        }
    }

    /// Any request.
    pub async fn send(&self, request: Request<Bytes>) -> Answer {
        self.send_as(request, User::master("tester")).await
    }

    pub async fn send_as(&self, request: Request<Bytes>, user: User) -> Answer {
        let (parts, body) = self.open_stream(request, user).await;
        let body = tokio::time::timeout(PATIENCE, body.collect()).await;
        let body = body.expect("an answer ends").unwrap().to_bytes();
        Answer {
            code: parts.status.as_u16(),
            headers: parts.headers,
            body,
        }
    }

    async fn open_stream(
        &self,
        request: Request<Bytes>,
        user: User,
    ) -> (http::response::Parts, Body) {
        let (parts, body) = request.into_parts();
        let request = Request::from_parts(parts, http_body_util::Full::new(body));
        let answer = connection::answer(&self.server.api, request, user);
        let answer = tokio::time::timeout(PATIENCE, answer).await;
        answer.expect("headers come in time").into_parts()
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(request(Method::GET, path, None)).await
    }

    /// A read in another form, as its `Accept` header names it.
    pub async fn get_as(&self, path: &str, accept: &str) -> Answer {
        let mut request = request(Method::GET, path, None);
        let accept = accept.parse().unwrap();
        request.headers_mut().insert(header::ACCEPT, accept);
        self.send(request).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(request(Method::POST, path, Some(body))).await
    }

    pub async fn put(&self, path: &str, body: &Value) -> Answer {
        self.send(request(Method::PUT, path, Some(body))).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.send(request(Method::DELETE, path, None)).await
    }

    pub async fn delete_with(&self, path: &str, options: &Value) -> Answer {
        self.send(request(Method::DELETE, path, Some(options)))
            .await
    }

    pub async fn patch(&self, kind: &str, path: &str, body: &Value) -> Answer {
        self.patch_text(kind, path, &body.to_string()).await
    }

    pub async fn patch_text(&self, kind: &str, path: &str, body: &str) -> Answer {
        let mut request = Request::new(Bytes::from(body.to_owned()));
        *request.method_mut() = Method::PATCH;
        *request.uri_mut() = path.parse().unwrap();
        let kind = kind.parse().unwrap();
        request.headers_mut().insert(header::CONTENT_TYPE, kind);
        self.send(request).await
    }

    /// A watch; `path` says the rest of its query.
    pub async fn watch(&self, path: &str) -> Watch {
        self.watch_as(path, "application/json").await
    }

    pub async fn watch_as(&self, path: &str, accept: &str) -> Watch {
        let join = if path.contains('?') { '&' } else { '?' };
        let mut request = request(Method::GET, &format!("{path}{join}watch=true"), None);
        let accept = accept.parse().unwrap();
        request.headers_mut().insert(header::ACCEPT, accept);
        let (parts, body) = self.open_stream(request, User::master("watcher")).await;
        let mut watch = Watch {
            body,
            read: Vec::new(),
        };
        if !parts.status.is_success() {
            let refused = watch.next().await;
            panic!("the watch was refused: {refused:?}");
        }
        watch
    }

    /// The answer to a watch that is refused at once.
    pub async fn watch_refused(&self, path: &str) -> Answer {
        self.get(&format!("{path}&watch=true")).await
    }

    /// The present revision, as a list says it.
    pub async fn revision(&self) -> u64 {
        version(&self.get(&format!("{NODES}?limit=1")).await.ok())
    }

    /// Creates a config map with this data and returns it.
    pub async fn map(&self, name: &str, data: &Value) -> Value {
        self.post(MAPS, &map(name, data)).await.is(201)
    }

    /// Creates a pod, bound to a node if one is named.
    pub async fn pod(&self, name: &str, node: &str) -> Value {
        let mut pod = pod(name);
        if !node.is_empty() {
            pod["spec"]["nodeName"] = node.into();
        }
        self.post(PODS, &pod).await.is(201)
    }
}

async fn open(options: Options) -> InProcess {
    let address = "192.0.2.1:6443".parse().unwrap();
    let opened = InProcess::open(options, address, "10.96.0.0/16".parse().unwrap()).await;
    opened.unwrap_or_else(|error| panic!("the server does not open: {error}"))
}

/// A request with a JSON body, or without one.
pub fn request(method: Method, path: &str, body: Option<&Value>) -> Request<Bytes> {
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

/// An answer that has been read to its end.
pub struct Answer {
    pub code: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error} in {:?}", self.text()))
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// The body of an answer that must have this code.
    #[track_caller]
    pub fn is(&self, code: u16) -> Value {
        assert_eq!(self.code, code, "{}", self.text());
        self.json()
    }

    #[track_caller]
    pub fn ok(&self) -> Value {
        self.is(200)
    }

    /// The Status of a failure, which must have this shape.
    #[track_caller]
    pub fn fails(&self, code: u16, reason: &str) -> Value {
        let status = self.is(code);
        assert_eq!(status["kind"], "Status", "{status}");
        assert_eq!(status["apiVersion"], "v1", "{status}");
        assert_eq!(status["status"], "Failure", "{status}");
        assert_eq!(status["reason"], reason, "{status}");
        assert_eq!(status["code"], code, "{status}");
        status
    }

    /// A failure in exactly these words.
    #[track_caller]
    pub fn says(&self, code: u16, reason: &str, message: &str) -> Value {
        let status = self.fails(code, reason);
        assert_eq!(status["message"], message);
        status
    }

    pub fn header(&self, name: header::HeaderName) -> &str {
        self.headers.get(name).map_or("", |v| v.to_str().unwrap())
    }

    pub fn warnings(&self) -> Vec<&str> {
        let values = self.headers.get_all(header::WARNING).iter();
        values.map(|v| v.to_str().unwrap()).collect()
    }
}

/// A watch under way.
pub struct Watch {
    body: Body,
    read: Vec<u8>,
}

impl Watch {
    /// The next line; `None` at the end of the watch.
    pub async fn next(&mut self) -> Option<Value> {
        self.next_line()
            .await
            .map(|line| serde_json::from_slice(&line).unwrap())
    }

    /// The next line as it was sent.
    pub async fn next_line(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(end) = self.read.iter().position(|b| *b == b'\n') {
                return Some(self.read.drain(..=end).collect());
            }
            let frame = tokio::time::timeout(PATIENCE, self.body.frame()).await;
            match frame.expect("the next event comes in time") {
                Some(frame) => self
                    .read
                    .extend_from_slice(&frame.unwrap().into_data().unwrap()),
                None => {
                    assert!(self.read.is_empty(), "the watch ended within a line");
                    return None;
                }
            }
        }
    }

    /// The next event, which must be of this type and about this object.
    #[track_caller]
    pub fn expect<'a>(
        &'a mut self,
        kind: &'a str,
        name: &'a str,
    ) -> impl Future<Output = Value> + 'a {
        let caller = std::panic::Location::caller();
        async move {
            let event = self
                .next()
                .await
                .unwrap_or_else(|| panic!("{caller}: the watch ended"));
            let shown = (&event["type"], &event["object"]["metadata"]["name"]);
            assert_eq!(shown, (&json!(kind), &json!(name)), "{caller}: {event}");
            event["object"].clone()
        }
    }

    /// Types and names of the next events.
    pub async fn take(&mut self, count: usize) -> Vec<String> {
        let mut seen = Vec::new();
        for _ in 0..count {
            let event = self.next().await.expect("another event");
            let name = event["object"]["metadata"]["name"].as_str().unwrap_or("-");
            seen.push(format!("{} {name}", event["type"].as_str().unwrap()));
        }
        seen
    }
}

/// The resourceVersion of an object or a list.
#[track_caller]
pub fn version(object: &Value) -> u64 {
    let text = object["metadata"]["resourceVersion"]
        .as_str()
        .unwrap_or_default();
    text.parse()
        .unwrap_or_else(|_| panic!("no resourceVersion in {object}"))
}

pub fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().expect("a list has items");
    items
        .iter()
        .map(|i| i["metadata"]["name"].as_str().unwrap())
        .collect()
}

pub fn map(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

pub fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i:1"}]},
    })
}

pub fn node(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
}

pub fn daemonset(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "c", "image": "i:1"}]},
            },
        },
    })
}
