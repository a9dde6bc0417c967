//! Clients that are slow, silent, half gone or no clients at all.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use kennel_testkit::{Deadline, eventually};

use crate::server_faults::fixture::{
    CONFIGMAPS, Fixture, KENNEL, configmap, impatient, refusal, server,
};

const JSON: &str = "application/json";
/// A server that waits for a second ends a connection well before this.
const SOON: Duration = Duration::from_secs(10);

fn raw(server: &Fixture) -> TcpStream {
    let socket = TcpStream::connect(server.kennel.address()).unwrap();
    socket.set_read_timeout(Some(SOON)).unwrap();
    socket
}

/// Waits for the other side to hang up, by whatever means.
fn is_hung_up_on(mut socket: TcpStream, what: &str) {
    let started = Instant::now();
    let mut buffer = [0; 1024];
    while matches!(socket.read(&mut buffer), Ok(count) if count > 0) {}
    assert!(started.elapsed() < SOON, "{what}: still connected");
}

#[test]
fn what_is_not_tls_is_hung_up_on() {
    let server = impatient();
    let garbage: Vec<u8> = (0..=255).cycle().take(10_000).collect();
    // A handshake record that announces more than it brings.
    let half_hello = [0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];
    for (what, bytes) in [
        (
            "plain HTTP",
            &b"GET /readyz HTTP/1.1\r\nHost: kennel\r\n\r\n"[..],
        ),
        ("garbage", &garbage),
        ("half a hello", &half_hello),
        ("nothing", b""),
    ] {
        let mut socket = raw(&server);
        // It may hang up while we speak.
        let _sent = socket.write_all(bytes);
        is_hung_up_on(socket, what);
    }
    let socket = raw(&server);
    socket.shutdown(Shutdown::Write).unwrap();
    is_hung_up_on(socket, "a client that left");
    server.is_well("no TLS");
}

#[test]
fn clients_that_do_not_get_on_with_it_are_given_up() {
    let server = impatient();
    for (what, bytes) in [
        ("silence", &b""[..]),
        ("half a request line", b"GET /rea"),
        (
            "half of the headers",
            b"GET /readyz HTTP/1.1\r\nHost: kennel\r\nX-",
        ),
    ] {
        let mut wire = server.admin.open().unwrap();
        wire.send(bytes).unwrap();
        let started = Instant::now();
        let _last_words = wire.rest();
        assert!(started.elapsed() < SOON, "{what}");
    }
    for (what, bytes) in [("silence", &b""[..]), ("half a preface", b"PRI * HT")] {
        let mut wire = server.admin.http2().open().unwrap();
        wire.send(bytes).unwrap();
        let started = Instant::now();
        let _settings = wire.rest();
        assert!(started.elapsed() < SOON, "HTTP/2: {what}");
    }
    let mut wire = server.admin.open().unwrap();
    let head = format!("POST {CONFIGMAPS} HTTP/1.1\r\nHost: k\r\nContent-Length: 100\r\n\r\n{{");
    wire.send(head.as_bytes()).unwrap();
    let (code, reason) = refusal(&wire.reply().unwrap());
    assert_eq!((code, reason.as_str()), (400, "BadRequest"));
    server.is_well("slow clients");
}

#[test]
fn a_request_that_is_cut_off_stores_nothing() {
    let server = server();
    let body = configmap("half", "x");
    let head = format!(
        "POST {CONFIGMAPS} HTTP/1.1\r\nHost: k\r\nContent-Type: {JSON}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    for sent in [0, 1, body.len() / 2, body.len() - 1] {
        let mut wire = server.admin.open().unwrap();
        wire.send(head.as_bytes()).unwrap();
        wire.send(&body[..sent]).unwrap();
        drop(wire);
        let mut wire = server.admin.open().unwrap();
        wire.send(head.as_bytes()).unwrap();
        wire.send(&body[..sent]).unwrap();
        // Nothing more will come, and we say so: there may be an answer, but no success.
        wire.half_close().unwrap();
        let answer = String::from_utf8_lossy(&wire.rest().unwrap_or_default()).into_owned();
        assert!(!answer.contains("201 Created"), "{answer}");
    }
    let gone = server.admin.ask("GET", &format!("{CONFIGMAPS}/half"), b"");
    assert_eq!(refusal(&gone).0, 404);
    server.is_well("requests cut off");
}

/// A value large enough that a few hundred changes fill every buffer on the way to a client.
const LARGE: usize = 100_000;
const CHANGES: usize = 300;

fn watch(server: &Fixture) -> kennel_testkit::Wire {
    let mut wire = server.admin.open().unwrap();
    let path = format!("{CONFIGMAPS}?watch=1&fieldSelector=metadata.name%3Dbusy");
    let request = format!("GET {path} HTTP/1.1\r\nHost: kennel\r\n\r\n");
    wire.send(request.as_bytes()).unwrap();
    assert_eq!(wire.head().unwrap().0, 200);
    wire
}

fn watches(server: &Fixture) -> u32 {
    let text = server.admin.ask("GET", "/metrics", b"").text();
    let line = text.lines().find_map(|l| l.strip_prefix("kennel_watches "));
    line.and_then(|count| count.parse().ok()).unwrap()
}

#[test]
fn a_watcher_that_does_not_read_is_cut_off_and_others_are_not() {
    let server = impatient();
    assert_eq!(server.create("busy", "").code, 201);
    let before = watches(&server);
    let _deaf: Vec<_> = (0..5).map(|_| watch(&server)).collect();
    let mut attentive = watch(&server);
    let reading = std::thread::spawn(move || {
        let mut lines = 0;
        while lines <= CHANGES {
            let chunk = attentive.chunk().unwrap().expect("the watch goes on");
            lines += chunk.split(|byte| *byte == b'\n').count() - 1;
        }
    });
    let resident = server.kennel.resident_bytes();
    let mut wire = server.admin.open().unwrap();
    let path = format!("{CONFIGMAPS}/busy");
    for n in 0..CHANGES {
        let value = n.to_string().repeat(LARGE / n.to_string().len());
        let body = configmap("busy", &value);
        assert_eq!(wire.ask("PUT", &path, JSON, &body).unwrap().code, 200);
    }
    reading.join().expect("who reads sees everything");
    eventually(Deadline::seconds(10), || match watches(&server) {
        left if left <= before + 1 => Ok(()),
        left => Err(format!("{left} watches, {before} before")),
    });
    let grown = server.kennel.resident_bytes().saturating_sub(resident);
    assert!(grown < 200 << 20, "{grown} bytes more than before");
    server.is_well("deaf watchers");
}

#[test]
fn a_client_that_does_not_read_its_list_is_given_up() {
    let server = impatient();
    let unvisited = sockets(&server);
    for n in 0..20 {
        let large = "x".repeat(900_000);
        assert_eq!(server.create(&format!("large-{n}"), &large).code, 201);
    }
    let mut wire = server.admin.open().unwrap();
    let request = format!("GET {CONFIGMAPS} HTTP/1.1\r\nHost: kennel\r\n\r\n");
    wire.send(request.as_bytes()).unwrap();
    // Not reading is doing nothing; the server is watched through another door meanwhile.
    eventually(Deadline::seconds(10), || match sockets(&server) {
        count if count == unvisited => Ok(()),
        count => Err(format!("{count} sockets, {unvisited} before")),
    });
    let read = wire.rest().map_or(0, |bytes| bytes.len());
    assert!(read < 18_000_000, "all of the list came through");
    server.is_well("deaf clients");
}

/// How many sockets the server holds.
fn sockets(server: &Fixture) -> usize {
    let dir = format!("/proc/{}/fd", server.kennel.pid());
    let links = std::fs::read_dir(dir).unwrap().flatten();
    let links = links.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    links
        .filter(|link| link.to_string_lossy().starts_with("socket:"))
        .count()
}

#[test]
fn running_out_of_file_descriptors_passes() {
    let limit = r#"ulimit -n 64; exec "$0" "$@""#;
    let kennel = kennel_testkit::Kennel::start("sh", &["-c", limit, KENNEL, "server"]);
    let server = Fixture::of(kennel);
    let mut early = server.admin.open().unwrap();
    let crowd: Vec<_> = (0..100).map(|_| raw(&server)).collect();
    eventually(Deadline::seconds(10), || {
        let log = server.kennel.log();
        let said = log.contains("cannot accept connections");
        said.then_some(()).ok_or("nothing is said about it")
    });
    let reply = early.ask("GET", "/readyz", JSON, b"").unwrap();
    assert_eq!(reply.code, 200, "those who are connected are served");
    drop(crowd);
    server.is_well("no file descriptors");
    let log = server.kennel.log();
    assert_eq!(log.matches("cannot accept connections").count(), 1, "{log}");
}
