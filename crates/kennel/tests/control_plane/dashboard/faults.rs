//! Pages that ask for too much or leave, and the end of the dashboard.

use std::io::Write as _;
use std::net::TcpStream;
use std::process::Command;

use kennel_testkit::{Dashboard, Deadline, Events, eventually};

use super::fixture::{AGENT, Fixture, KENNEL};
use crate::why::fixture::answer;

#[test]
fn too_many_streams_are_refused_until_one_ends() {
    let fixture = Fixture::new(1, &[], &[]);
    let path = format!("{AGENT}/stream");
    let mut open: Vec<Events> = (0..40).map(|_| fixture.visitor.events(&path)).collect();
    let refused = fixture.visitor.get(&path);
    assert_eq!(
        (refused.status, refused.json()["code"].clone()),
        (503, "TooMany".into())
    );
    assert_eq!(
        fixture.visitor.get("/api/session").status,
        200,
        "other requests are answered"
    );
    drop(open.pop());
    eventually(Deadline::seconds(60), || {
        let overview = fixture.visitor.try_events("/api/overview");
        overview.map(drop)
    });
}

#[test]
fn nonsense_is_refused_and_does_no_harm() {
    let fixture = Fixture::new(1, &[], &[]);
    let send = |bytes: &[u8]| {
        let mut socket = TcpStream::connect(fixture.dashboard.host()).unwrap();
        // It may close before everything is written.
        let _written = socket.write_all(bytes);
    };
    send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03");
    send(b"GET / HTTP/9\r\n\r\n");
    send(&vec![b'x'; 100_000]);
    send(b"POST /api/daemonsets/a/b/rollout HTTP/1.1\r\nContent-Length: 18446744073709551615\r\n\r\n");
    let visitor = &fixture.visitor;
    assert_eq!(visitor.get("/api/daemonsets/%00/x/stream").status, 404);
    assert_eq!(
        visitor
            .get("/api/daemonsets/default/agent/nodes/..%2f..%2fsecrets/why")
            .status,
        404
    );
    assert_eq!(visitor.send("DELETE", "/", "").status, 405);
    assert_eq!(
        visitor.send("DELETE", "/api/nodes/sim-1", "").status,
        403,
        "without an origin"
    );
    assert_eq!(visitor.get("/api/session").status, 200);
}

#[test]
fn it_stops_at_once_although_pages_are_open() {
    let fixture = Fixture::new(1, &[], &[]);
    let mut events = fixture.visitor.events(&format!("{AGENT}/stream"));
    events.wait("picture", |_| Some(()));
    let pid = fixture.dashboard.pid().to_string();
    assert!(
        Command::new("kill")
            .args(["-TERM", &pid])
            .status()
            .unwrap()
            .success()
    );
    fixture.dashboard.wait_for_end();
    while events.next().is_some() {}
}

#[test]
fn freed_memory_is_returned_at_once_unless_a_delay_is_set() {
    let fixture = Fixture::new(1, &[], &[]);
    let delay = |dashboard: &Dashboard| {
        let environment = std::fs::read(format!("/proc/{}/environ", dashboard.pid())).unwrap();
        let environment = String::from_utf8_lossy(&environment).into_owned();
        let mut variables = environment.split('\0');
        let found = variables.find_map(|variable| variable.strip_prefix("MIMALLOC_PURGE_DELAY="));
        found.map(str::to_owned)
    };
    assert_eq!(delay(&fixture.dashboard).as_deref(), Some("0"));
    // It is the process that was started, by its arguments and its name.
    let of =
        |file: &str| std::fs::read_to_string(format!("/proc/{}/{file}", fixture.dashboard.pid()));
    assert_eq!(of("comm").unwrap(), "kennel\n");
    let arguments = of("cmdline").unwrap();
    assert!(
        arguments.contains("\0dashboard\0--no-open\0"),
        "{arguments:?}"
    );

    let mut command = Command::new(KENNEL);
    command.args([
        "dashboard",
        "--no-open",
        "--listen",
        "127.0.0.1:0",
        "--kubeconfig",
    ]);
    command.arg(fixture.rollout.cluster.kennel.kubeconfig());
    let chosen = Dashboard::of(command.env("MIMALLOC_PURGE_DELAY", "10"));
    assert_eq!(delay(&chosen).as_deref(), Some("10"));
}

#[test]
fn a_server_that_cannot_be_reached_is_an_error_at_the_start() {
    let fixture = Fixture::new(1, &[], &[]);
    let kubeconfig = std::fs::read_to_string(fixture.rollout.cluster.kennel.kubeconfig()).unwrap();
    let address = fixture.rollout.cluster.kennel.address().to_string();
    let file = tempfile::NamedTempFile::new().unwrap();
    // Nothing listens on port 1.
    std::fs::write(file.path(), kubeconfig.replace(&address, "127.0.0.1:1")).unwrap();
    let mut command = Command::new(KENNEL);
    let refused = answer(
        command
            .args(["dashboard", "--no-open", "--kubeconfig"])
            .arg(file.path()),
    );
    assert_eq!(refused.code, 1);
    assert!(
        refused.stderr.contains("refuses the connection"),
        "{}",
        refused.stderr
    );
}
