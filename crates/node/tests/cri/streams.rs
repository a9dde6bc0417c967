//! Commands that somebody watches, containers that somebody attaches to, ports that somebody connects to.

use kennel_node::runtime::{Attachment, ExecRequest, Reader, Runtime, Size};
use kennel_testkit::machine::possible;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use crate::world::{PATIENCE, World, words};

const ALL: Attachment = Attachment {
    stdin: true,
    stdout: true,
    stderr: true,
    tty: false,
};

async fn all(reader: Option<Reader>) -> String {
    let mut text = String::new();
    let mut reader = reader.unwrap();
    timeout(PATIENCE, reader.read_to_string(&mut text))
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
        let count = timeout(PATIENCE, reader.read(&mut bytes))
            .await
            .unwrap()
            .unwrap();
        assert!(count > 0, "it ended: {}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&bytes[..count]);
    }
    String::from_utf8_lossy(&seen).into_owned()
}

#[tokio::test]
async fn commands_have_streams_terminals_and_codes() {
    if !possible() {
        return;
    }
    let world = World::new().await;
    let pod = world.start(world.pod("web")).await;
    let id = world
        .run(&pod, &world.script("app", "sleep 1000").await)
        .await;

    let command = vec![
        "/bin/sh".to_owned(),
        "-c".to_owned(),
        "cat; echo err >&2; exit 6".to_owned(),
    ];
    let mut session = world
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
    assert_eq!(timeout(PATIENCE, session.exit).await.unwrap().unwrap(), 6);

    let tty = Attachment { tty: true, ..ALL };
    let request = ExecRequest {
        command: words("/bin/sh"),
        streams: tty,
    };
    let mut session = world.cri.exec_session(&id, &request).await.unwrap();
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
    assert_eq!(timeout(PATIENCE, session.exit).await.unwrap().unwrap(), 2);
}

#[tokio::test]
async fn one_can_attach_and_connect() {
    if !possible() {
        return;
    }
    let world = World::new().await;
    let mut config = world.pod("web");
    config.host_network = false;
    config.hostname = "web".to_owned();
    let pod = world.start(config).await;

    let mut config = world
        .script("echo", "while read line; do echo \"got $line\"; done")
        .await;
    config.stdin = true;
    let id = world.run(&pod, &config).await;
    let mut session = world.cri.attach(&id, ALL).await.unwrap();
    session
        .stdin
        .as_mut()
        .unwrap()
        .write_all(b"it\n")
        .await
        .unwrap();
    until(session.stdout.as_mut().unwrap(), "got it").await;
    drop(session);
    let run = world.look(&pod.config.pod.uid).await.runs.remove(0);
    assert!(run.is_running(), "it goes on: {run:?}");

    let server = "while :; do echo served | nc -l -p 8080; done";
    world.run(&pod, &world.script("server", server).await).await;
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        let mut text = String::new();
        let mut connection = world.cri.connect(&pod.sandbox, 8080).await.unwrap();
        if connection.read_to_string(&mut text).await.is_ok() && text == "served\n" {
            break;
        }
        assert!(
            tokio::time::Instant::now() < deadline,
            "nothing is served: {text}"
        );
    }
}
