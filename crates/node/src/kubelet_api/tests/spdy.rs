//! Commands and ports over SPDY, as kubectl before 1.30 and the API server use them.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use super::fixture::{DEADLINE, Fixture};
use crate::kubelet_api::stream::spdy::{Connection, Headers, Role, Stream};
use crate::runtime::Size;

const COMMAND: [(&str, &str); 3] = [
    ("upgrade", "SPDY/3.1"),
    ("x-stream-protocol-version", "v5.channel.k8s.io"),
    ("x-stream-protocol-version", "v4.channel.k8s.io"),
];
const FORWARD: [(&str, &str); 2] = [
    ("upgrade", "SPDY/3.1"),
    ("x-stream-protocol-version", "portforward.k8s.io"),
];

fn open(connection: &Connection, kind: &str) -> Stream {
    connection
        .open(Headers::default().with("streamType", kind))
        .unwrap()
}

async fn text(stream: &mut Stream) -> String {
    let mut text = String::new();
    timeout(DEADLINE, stream.read_to_string(&mut text))
        .await
        .expect("in time")
        .unwrap();
    text
}

#[tokio::test]
async fn a_command_sends_its_output_and_exit_status() {
    let fixture = Fixture::start().await;
    let query = "command=say&command=3&command=out&command=err&output=1&error=1";
    let io = fixture
        .upgrade(&format!("/exec/ns/p/c?{query}"), &COMMAND)
        .await;
    let connection = Connection::new(io, Role::Client);
    let mut error = open(&connection, "error");
    let (mut stdout, mut stderr) = (open(&connection, "stdout"), open(&connection, "stderr"));
    assert_eq!(text(&mut stdout).await, "out");
    assert_eq!(text(&mut stderr).await, "err");
    let status: serde_json::Value = serde_json::from_str(&text(&mut error).await).unwrap();
    assert_eq!(status["reason"], "NonZeroExitCode");
    assert_eq!(status["details"]["causes"][0]["reason"], "ExitCode");
    assert_eq!(status["details"]["causes"][0]["message"], "3");
}

#[tokio::test]
async fn a_command_that_cannot_start_reports_the_error_as_its_status() {
    let fixture = Fixture::start().await;
    let io = fixture
        .upgrade("/exec/ns/p/c?command=missing&output=1", &COMMAND)
        .await;
    let connection = Connection::new(io, Role::Client);
    let (mut error, _stdout) = (open(&connection, "error"), open(&connection, "stdout"));
    let status = text(&mut error).await;
    assert!(
        status.contains("error executing command in container: no such file"),
        "{status}"
    );
}

#[tokio::test]
async fn large_input_is_echoed_and_its_end_is_passed_on() {
    let fixture = Fixture::start().await;
    let io = fixture
        .upgrade("/exec/ns/p/c?command=cat&input=1&output=1", &COMMAND)
        .await;
    let connection = Connection::new(io, Role::Client);
    let mut error = open(&connection, "error");
    let (mut stdin, mut stdout) = (open(&connection, "stdin"), open(&connection, "stdout"));
    let sent: Vec<u8> = (0..1_000_000_u32).map(|n| n.to_le_bytes()[1]).collect();
    let writing = async {
        stdin.write_all(&sent).await.unwrap();
        stdin.shutdown().await.unwrap();
    };
    let mut back = Vec::new();
    let (read, ()) = tokio::join!(timeout(DEADLINE, stdout.read_to_end(&mut back)), writing);
    read.expect("in time").unwrap();
    assert!(back == sent);
    assert!(text(&mut error).await.contains("Success"));
}

#[tokio::test]
async fn terminal_sizes_reach_the_session() {
    let fixture = Fixture::start().await;
    let query = "command=hold&input=1&output=1&error=1&tty=1";
    let io = fixture
        .upgrade(&format!("/exec/ns/p/c?{query}"), &COMMAND)
        .await;
    let connection = Connection::new(io, Role::Client);
    // With a terminal there is no stderr stream, and the server does not wait for one.
    let kinds = ["error", "stdin", "stdout", "resize"];
    let [_error, _stdin, mut stdout, mut resize] = kinds.map(|kind| open(&connection, kind));
    resize
        .write_all(b"{\"Width\":80,\"Height\":24}\n")
        .await
        .unwrap();
    let size = async {
        loop {
            let started = fixture.runtime.sizes.lock().unwrap().pop();
            match started {
                Some(mut sizes) => return sizes.recv().await.unwrap(),
                None => tokio::task::yield_now().await,
            }
        }
    };
    let size = timeout(DEADLINE, size).await.expect("in time");
    let expected = Size {
        width: 80,
        height: 24,
    };
    assert_eq!(size, expected);
    // Stopping the server drops the session.
    fixture.stop.cancel();
    drop(timeout(DEADLINE, stdout.read_u8()).await.expect("in time"));
}

fn pair(connection: &Connection, port: u16, request: u16) -> (Stream, Stream) {
    let open = |kind: &str| {
        let headers = Headers::default()
            .with("streamType", kind)
            .with("port", port.to_string())
            .with("requestID", request.to_string());
        connection.open(headers).unwrap()
    };
    (open("error"), open("data"))
}

/// Echoes through several forwarded connections at once.
pub(super) async fn echo_through(connection: &Connection) {
    let mut pairs: Vec<_> = (0..5).map(|n| pair(connection, 80, n)).collect();
    for (n, (_, data)) in pairs.iter_mut().enumerate() {
        data.write_all(format!("hello {n}").as_bytes())
            .await
            .unwrap();
        data.shutdown().await.unwrap();
    }
    for (n, (error, data)) in pairs.iter_mut().enumerate() {
        assert_eq!(text(data).await, format!("hello {n}"));
        assert_eq!(text(error).await, "");
    }
    let (mut error, mut data) = pair(connection, 81, 99);
    assert_eq!(text(&mut data).await, "");
    let words = "error forwarding port 81 to pod p_ns, uid u: connection refused";
    assert_eq!(text(&mut error).await, words);
}

#[tokio::test]
async fn several_connections_are_forwarded() {
    let fixture = Fixture::start().await;
    let io = fixture.upgrade("/portForward/ns/p", &FORWARD).await;
    echo_through(&Connection::new(io, Role::Client)).await;
}

/// Port 82 resets connections on the first write.
#[tokio::test]
async fn a_reset_connection_does_not_affect_others() {
    let fixture = Fixture::start().await;
    let io = fixture.upgrade("/portForward/ns/p", &FORWARD).await;
    let connection = Connection::new(io, Role::Client);
    let (mut error, mut data) = pair(&connection, 82, 1);
    data.write_all(b"hello").await.unwrap();
    assert_eq!(text(&mut data).await, "");
    assert_eq!(text(&mut error).await, "");
    echo_through(&connection).await;
}
