//! Exec with streams, attach, and connections to ports.

use kennel_node::runtime::{Attachment, ExecRequest, Reader, Runtime, Size};
use kennel_testkit::machine::possible;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use crate::fixture::{DEADLINE, Fixture, words};

const ALL: Attachment = Attachment {
    stdin: true,
    stdout: true,
    stderr: true,
    tty: false,
};

async fn all(reader: Option<Reader>) -> String {
    let mut text = String::new();
    let mut reader = reader.unwrap();
    timeout(DEADLINE, reader.read_to_string(&mut text))
        .await
        .unwrap()
        .unwrap();
    text
}

/// Reads until a text has come.
async fn until(reader: &mut Reader, wanted: &str) -> String {
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains(wanted) {
        let mut bytes = [0; 1024];
        let count = timeout(DEADLINE, reader.read(&mut bytes))
            .await
            .unwrap()
            .unwrap();
        assert!(count > 0, "it ended: {}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&bytes[..count]);
    }
    String::from_utf8_lossy(&seen).into_owned()
}

#[tokio::test]
async fn exec_has_streams_terminals_and_exit_codes() {
    if !possible() {
        return;
    }
    let fixture = Fixture::new().await;
    let pod = fixture.start(fixture.pod("web")).await;
    let id = fixture
        .run(&pod, &fixture.script("app", "sleep 1000").await)
        .await;

    let command = vec![
        "/bin/sh".to_owned(),
        "-c".to_owned(),
        "cat; echo err >&2; exit 6".to_owned(),
    ];
    let mut session = fixture
        .cri
        .exec_session(
            &id,
            &ExecRequest {
                command,
                streams: ALL,
            },
        )
        .await
        .unwrap();
    let mut stdin = session.stdin.take().unwrap();
    let much = "0123456789abcde\n".repeat(20_000);
    let write = async {
        stdin.write_all(much.as_bytes()).await.unwrap();
        stdin.shutdown().await.unwrap();
    };
    let ((), out, err) = tokio::join!(
        write,
        all(session.stdout.take()),
        all(session.stderr.take())
    );
    assert_eq!(out, much);
    assert_eq!(err, "err\n");
    assert_eq!(timeout(DEADLINE, session.exit).await.unwrap().unwrap(), 6);

    let tty = Attachment { tty: true, ..ALL };
    let request = ExecRequest {
        command: words("/bin/sh"),
        streams: tty,
    };
    let mut session = fixture.cri.exec_session(&id, &request).await.unwrap();
    let (mut stdin, mut stdout) = (
        session.stdin.take().unwrap(),
        session.stdout.take().unwrap(),
    );
    session
        .resize
        .as_ref()
        .unwrap()
        .send(Size {
            width: 123,
            height: 45,
        })
        .await
        .unwrap();
    stdin
        .write_all(
            b"while [ \"$(stty size)\" != '45 123' ]; do sleep 0.05; done; echo si''zed; exit 2\n",
        )
        .await
        .unwrap();
    until(&mut stdout, "sized").await;
    assert_eq!(timeout(DEADLINE, session.exit).await.unwrap().unwrap(), 2);
}

#[tokio::test]
async fn attach_and_port_connections_work() {
    if !possible() {
        return;
    }
    let fixture = Fixture::new().await;
    let mut config = fixture.pod("web");
    config.host_network = false;
    config.hostname = "web".to_owned();
    let pod = fixture.start(config).await;

    let mut config = fixture
        .script("echo", "while read line; do echo \"got $line\"; done")
        .await;
    config.stdin = true;
    let id = fixture.run(&pod, &config).await;
    let mut session = fixture.cri.attach(&id, ALL).await.unwrap();
    session
        .stdin
        .as_mut()
        .unwrap()
        .write_all(b"it\n")
        .await
        .unwrap();
    until(session.stdout.as_mut().unwrap(), "got it").await;
    drop(session);
    let run = fixture.inspect(&pod.config.pod.uid).await.runs.remove(0);
    assert!(run.is_running(), "it goes on: {run:?}");

    let server = "while :; do echo served | nc -l -p 8080; done";
    fixture
        .run(&pod, &fixture.script("server", server).await)
        .await;
    let deadline = tokio::time::Instant::now() + DEADLINE;
    loop {
        let mut text = String::new();
        let mut connection = fixture.cri.connect(&pod.sandbox, 8080).await.unwrap();
        if connection.read_to_string(&mut text).await.is_ok() && text == "served\n" {
            break;
        }
        assert!(
            tokio::time::Instant::now() < deadline,
            "nothing is served: {text}"
        );
    }
}
