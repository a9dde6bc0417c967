//! One client that takes whatever it can get, and others beside it that must not notice: a reader, a
//! writer, a node that renews its lease, and the scheduler.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use kennel_server::pki::issue::Files;
use kennel_server::pki::{Authority, Clock};
use kennel_testkit::{Access, Deadline, Reply, Wire, eventually};
use serde_json::json;

use crate::server_faults::fixture::{CONFIGMAPS, Fixture, configmap, refusal, server};

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
const LARGE: &str = "/api/v1/namespaces/kube-public/configmaps";

/// One user's part of the seats for requests that write, and of the queue before them.
const SHARE: usize = 50;
const QUEUE: usize = 50;
/// Requests that each of the others makes.
const TURNS: usize = 40;
/// All that the others do is done by then: a hundred times what it takes on a machine that is busy.
const DONE_BY: Duration = Duration::from_mins(2);

/// A server with users who may do everything and are not in `system:masters`.
struct FloodedServer {
    server: Fixture,
    authority: Authority,
    certificates: tempfile::TempDir,
}

impl FloodedServer {
    fn new() -> Self {
        let server = server();
        let authority =
            Authority::open(&server.kennel.data_dir().join("pki"), &Clock::default()).unwrap();
        let server = Self {
            server,
            authority,
            certificates: tempfile::tempdir().unwrap(),
        };
        server.create(
            "/apis/rbac.authorization.k8s.io/v1/clusterroles",
            &json!({"metadata": {"name": "user_access"},
                "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}),
        );
        server.create(
            "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
            &json!({"metadata": {"name": "citizens"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                    "name": "user_access"},
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group",
                    "name": "system:authenticated"}]}),
        );
        for n in 0..10 {
            let body = configmap(&format!("large-{n}"), &"x".repeat(900_000));
            let reply = server.server.admin.ask("POST", LARGE, &body);
            assert_eq!(reply.code, 201, "{}", reply.text());
        }
        server
    }

    fn create(&self, path: &str, object: &serde_json::Value) {
        let body = object.to_string().into_bytes();
        let reply = self.server.admin.ask("POST", path, &body);
        assert_eq!(reply.code, 201, "{}", reply.text());
    }

    fn user_access(&self, name: &str, group: &str) -> Access {
        let dir: &Path = self.certificates.path();
        let file = name.replace(':', "-");
        let issued = Files::new(&self.authority, dir, Clock::default().now()).client(
            &file,
            name,
            Some(group),
        );
        let (cert, key) = issued.unwrap();
        let (address, data) = (self.server.kennel.address(), self.server.kennel.data_dir());
        Access::showing(address, &data, &cert, &key)
    }

    /// The metrics of a lane.
    fn figure(&self, name: &str, lane: &str) -> usize {
        let text = self.server.admin.ask("GET", "/metrics", b"").text();
        let start = format!("kennel_inflight_{name}{{lane=\"{lane}\"}} ");
        let line = text.lines().find_map(|line| line.strip_prefix(&start));
        line.expect("there is such a figure").parse().unwrap()
    }

    fn until(&self, name: &str, lane: &str, is_enough: impl Fn(usize) -> bool) {
        eventually(Deadline::seconds(30), || match self.figure(name, lane) {
            count if is_enough(count) => Ok(()),
            count => Err(format!("{name} {lane}: {count}")),
        });
    }
}

/// The flood: what it holds on to, and what goes on hammering until told to stop.
struct Flood {
    stop: Arc<AtomicBool>,
    refused: Arc<AtomicUsize>,
    hammers: Vec<JoinHandle<()>>,
    _held: Vec<Wire>,
}

fn send(access: &Access, request: &str) -> Wire {
    let mut wire = access.open().unwrap();
    wire.send(request.as_bytes()).unwrap();
    wire
}

/// A request to write whose body never comes.
fn slow_body(access: &Access) -> Wire {
    let head = format!("POST {CONFIGMAPS} HTTP/1.1\r\nHost: k\r\nContent-Length: 100\r\n\r\n{{");
    send(access, &head)
}

fn get(access: &Access, path: &str) -> Wire {
    send(access, &format!("GET {path} HTTP/1.1\r\nHost: k\r\n\r\n"))
}

impl Flood {
    fn over(server: &FloodedServer) -> Self {
        let mallory = server.user_access("mallory", "citizens");
        let mut held: Vec<Wire> = (0..SHARE).map(|_| slow_body(&mallory)).collect();
        server.until("requests", "mutating", |taken| taken == SHARE);
        // The next ones wait, and those after them are told to come back later.
        held.extend((0..QUEUE).map(|_| slow_body(&mallory)));
        server.until("queued_requests", "mutating", |waiting| waiting == QUEUE);
        for _ in 0..10 {
            is_too_many(&slow_body(&mallory).reply().unwrap());
        }
        // Large lists and busy watches that nobody reads.
        held.extend((0..40).map(|_| get(&mallory, LARGE)));
        held.extend((0..40).map(|_| get(&mallory, &format!("{CONFIGMAPS}?watch=1"))));
        let (stop, refused) = (Arc::default(), Arc::default());
        let mut flood = Self {
            stop,
            refused,
            hammers: Vec::new(),
            _held: held,
        };
        for n in 0..6 {
            flood.hammer(&mallory, n);
        }
        flood
    }

    /// Asks and asks, and never waits for as long as it is told to.
    fn hammer(&mut self, mallory: &Access, number: usize) {
        let (stop, refused) = (Arc::clone(&self.stop), Arc::clone(&self.refused));
        let mut wire = mallory.open().unwrap();
        self.hammers.push(std::thread::spawn(move || {
            for n in 0.. {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let body = configmap(&format!("flood-{number}-{n}"), "x");
                let reply = match number % 2 {
                    0 => wire.ask("POST", CONFIGMAPS, JSON, &body),
                    _ => wire.ask("GET", LARGE, JSON, b""),
                };
                let reply = reply.unwrap();
                if reply.code == 429 {
                    is_too_many(&reply);
                    refused.fetch_add(1, Ordering::Relaxed);
                }
            }
        }));
    }

    /// Ends, and tells how many of its requests were refused while it hammered.
    fn end(self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        for hammer in self.hammers {
            hammer.join().expect("even the flood gets proper answers");
        }
        self.refused.load(Ordering::Relaxed)
    }
}

fn is_too_many(reply: &Reply) {
    let (code, reason) = refusal(reply);
    assert_eq!((code, reason.as_str()), (429, "TooManyRequests"));
    assert_eq!(reply.header("Retry-After"), Some("1"));
    let status = reply.json();
    assert_eq!(status["details"]["retryAfterSeconds"], 1);
    let words = "the server has received too many requests and has asked us to try again later";
    assert_eq!(status["message"], words);
}

/// Makes requests, one after the other and each on a new connection now and then; all succeed.
fn goes_on(who: &str, access: &Access, request: impl Fn(usize) -> (&'static str, String, Vec<u8>)) {
    let mut wire = access.open().unwrap();
    for turn in 0..TURNS {
        if turn % 10 == 9 {
            wire = access.open().unwrap();
        }
        let (method, path, body) = request(turn);
        let kind = if method == "PATCH" { MERGE } else { JSON };
        let reply = wire.ask(method, &path, kind, &body).unwrap();
        assert!(reply.code < 300, "{who}: {} {}", reply.code, reply.text());
    }
}

fn lease(turn: usize) -> Vec<u8> {
    let renewed = format!("2026-01-01T00:00:{turn:02}.000000Z");
    let lease = json!({"metadata": {"name": "n"},
        "spec": {"holderIdentity": "n", "leaseDurationSeconds": 40, "renewTime": renewed}});
    lease.to_string().into_bytes()
}

#[test]
fn a_flood_from_one_client_is_not_noticed_by_the_others() {
    let server = FloodedServer::new();
    let node = server.user_access("system:node:n", "system:nodes");
    assert_eq!(node.ask("POST", LEASES, &lease(0)).code, 201);
    let (reader, writer) = (
        server.user_access("reader", "citizens"),
        server.user_access("writer", "citizens"),
    );
    let scheduler = server.user_access("system:kube-scheduler", "citizens");
    let flood = Flood::over(&server);
    let started = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            goes_on("reader", &reader, |_| {
                ("GET", "/api/v1/nodes".into(), Vec::new())
            });
        });
        scope.spawn(|| {
            goes_on("writer", &writer, |turn| {
                let body = configmap(&format!("mine-{turn}"), "x");
                ("POST", CONFIGMAPS.into(), body)
            });
        });
        scope.spawn(|| {
            goes_on("node", &node, |turn| {
                ("PATCH", format!("{LEASES}/n"), lease(turn))
            });
        });
        scope.spawn(|| {
            goes_on("scheduler", &scheduler, |turn| {
                let body = configmap(&format!("scheduled-{turn}"), "x");
                ("POST", CONFIGMAPS.into(), body)
            });
        });
    });
    assert!(started.elapsed() < DONE_BY, "{:?}", started.elapsed());
    // All the while it was flooded.
    assert_eq!(server.figure("requests", "mutating"), SHARE);
    assert!(flood.end() > 0, "nothing was refused while it hammered");
    // It is gone, and so is all that it held.
    for lane in ["reading", "mutating", "watches"] {
        // The request for the metrics takes a seat as well.
        server.until("requests", lane, |taken| {
            taken == usize::from(lane == "reading")
        });
        server.until("queued_requests", lane, |waiting| waiting == 0);
    }
    server.server.is_well("a flood");
}

/// Unfinished handshakes, and connections without requests.
#[test]
fn many_unfinished_connections_refuse_no_other_client() {
    let server = FloodedServer::new();
    let address = server.server.kennel.address();
    let crowd: Vec<_> = (0..140)
        .map(|_| std::net::TcpStream::connect(address).unwrap())
        .collect();
    server.until("requests", "handshakes", |taken| taken >= 140);
    let reader = server.user_access("reader", "citizens");
    for _ in 0..20 {
        assert_eq!(reader.ask("GET", "/api/v1/nodes", b"").code, 200);
    }
    drop(crowd);
    server.until("requests", "handshakes", |taken| taken == 0);
}
