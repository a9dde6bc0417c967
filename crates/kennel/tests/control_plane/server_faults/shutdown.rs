//! The end of a server, asked for or not, with traffic on it: nothing acknowledged is lost, watches end
//! between lines, and the next server on the same directory goes on where this one stopped.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use kennel_testkit::{Access, Deadline, Kennel, eventually};
use serde_json::Value;

use crate::server_faults::fixture::{CONFIGMAPS, Fixture, configmap, impatient, server};

const JSON: &str = "application/json";
const WRITERS: usize = 4;

/// Names and versions of what a writer was told is stored.
type Acknowledged = BTreeMap<String, u64>;

/// Creates objects until the server is gone. Whatever is answered must be a success or a Status.
fn write(admin: Access, writer: usize, started: &'static AtomicBool) -> JoinHandle<Acknowledged> {
    thread::spawn(move || {
        let mut acknowledged = Acknowledged::new();
        let Ok(mut wire) = admin.open() else {
            return acknowledged;
        };
        for n in 0.. {
            let name = format!("w{writer}-{n}");
            let body = configmap(&name, "x");
            let Ok(reply) = wire.ask("POST", CONFIGMAPS, JSON, &body) else {
                break;
            };
            let object = reply.json();
            if reply.code != 201 {
                assert_eq!(object["kind"], "Status", "{}", reply.text());
                break;
            }
            acknowledged.insert(name, version(&object));
            started.store(true, Ordering::Release);
        }
        acknowledged
    })
}

fn version(object: &Value) -> u64 {
    let text = object["metadata"]["resourceVersion"].as_str();
    text.and_then(|text| text.parse().ok())
        .expect("objects have versions")
}

/// Reads a watch to its end: how many whole lines, and whether the end was a proper one.
fn watch(admin: &Access, path: &str) -> JoinHandle<(usize, bool)> {
    let mut wire = admin.open().unwrap();
    let request = format!("GET {path}?watch=1 HTTP/1.1\r\nHost: kennel\r\n\r\n");
    wire.send(request.as_bytes()).unwrap();
    assert_eq!(wire.head().unwrap().0, 200);
    thread::spawn(move || {
        let mut text = Vec::new();
        let proper = loop {
            match wire.chunk() {
                Ok(Some(chunk)) => text.extend(chunk),
                Ok(None) => break true,
                Err(_) => break false,
            }
        };
        let whole = text.is_empty() || text.ends_with(b"\n");
        let lines = text.split(|byte| *byte == b'\n').filter(|l| !l.is_empty());
        let parsed = lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
        (parsed.count(), proper && whole && wire.rest().is_ok())
    })
}

/// Lets writers write until `end` was called, and returns what they were told.
fn under_traffic(server: &Fixture, end: impl FnOnce(&Kennel)) -> Acknowledged {
    let started: &'static AtomicBool = Box::leak(Box::default());
    let writers = (0..WRITERS).map(|n| write(server.admin.clone(), n, started));
    let writers: Vec<_> = writers.collect();
    eventually(Deadline::seconds(10), || {
        let started = started.load(Ordering::Acquire);
        started.then_some(()).ok_or("nothing was written")
    });
    end(&server.kennel);
    let told = writers.into_iter().map(|writer| writer.join().unwrap());
    told.flatten().collect()
}

/// What is there, by name.
fn stored(admin: &Access) -> Acknowledged {
    let list = admin.ask("GET", CONFIGMAPS, b"").json();
    let items = list["items"].as_array().expect("a list has items");
    let named = items.iter().map(|object| {
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        (name, version(object))
    });
    named.collect()
}

/// All that was acknowledged is there as it was, and new versions are above all old ones.
fn goes_on(server: &Fixture, acknowledged: &Acknowledged) {
    let stored = stored(&server.admin);
    for (name, version) in acknowledged {
        assert_eq!(stored.get(name), Some(version), "{name}");
    }
    let highest = stored.values().max().copied().unwrap_or_default();
    let created = version(&server.create("after", "x").json());
    assert!(created > highest, "{created} after {highest}");
    server.is_well("a restart");
}

#[test]
fn sigterm_under_traffic_loses_nothing_and_ends_watches_cleanly() {
    let server = server();
    let watches = [CONFIGMAPS, "/api/v1/pods", "/apis/apps/v1/replicasets"];
    let watches = watches.map(|path| watch(&server.admin, path));
    let asked = Instant::now();
    let acknowledged = under_traffic(&server, Kennel::terminate);
    for watch in watches {
        let (lines, clean) = watch.join().unwrap();
        assert!(clean, "a watch was torn off after {lines} lines");
    }
    // The bound is ten seconds; with clients that behave, nothing has to be waited for.
    assert!(asked.elapsed() < Duration::from_secs(8), "slow to stop");
    goes_on(&Fixture::of(server.kennel.restart()), &acknowledged);
}

#[test]
fn a_kill_under_traffic_loses_nothing_that_was_acknowledged() {
    let mut server = server();
    for _ in 0..2 {
        let acknowledged = under_traffic(&server, |kennel| {
            let pid = rustix::process::Pid::from_raw(kennel.pid().cast_signed()).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        });
        server = Fixture::of(server.kennel.crash_and_restart());
        goes_on(&server, &acknowledged);
        for name in acknowledged.keys().map(String::as_str).chain(["after"]) {
            let path = format!("{CONFIGMAPS}/{name}");
            assert_eq!(server.admin.ask("DELETE", &path, b"").code, 200);
        }
    }
}

#[test]
fn clients_that_do_nothing_do_not_delay_the_end() {
    let server = server();
    let address = server.kennel.address();
    let _no_handshake = std::net::TcpStream::connect(address).unwrap();
    let _no_request = server.admin.open().unwrap();
    let _no_preface = server.admin.http2().open().unwrap();
    let mut idle = server.admin.open().unwrap();
    assert_eq!(idle.ask("GET", "/readyz", JSON, b"").unwrap().code, 200);
    let asked = Instant::now();
    assert_eq!(server.kennel.stop().code(), Some(0));
    assert!(asked.elapsed() < Duration::from_secs(5), "slow to stop");
}

/// A client that never reads, and one whose body never ends, cost the patience at shutdown, not more.
#[test]
fn clients_that_hang_do_not_prevent_the_end() {
    let server = impatient();
    let mut hanging = server.admin.open().unwrap();
    let head = format!("POST {CONFIGMAPS} HTTP/1.1\r\nHost: k\r\nContent-Length: 9\r\n\r\n{{");
    hanging.send(head.as_bytes()).unwrap();
    let asked = Instant::now();
    assert_eq!(server.kennel.stop().code(), Some(0));
    assert!(asked.elapsed() < Duration::from_secs(5), "slow to stop");
}
