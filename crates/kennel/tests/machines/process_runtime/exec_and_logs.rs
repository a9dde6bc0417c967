//! Commands in containers, terminals, attaching, and logs that are renamed.

use std::time::{Duration, Instant};

use kennel_node::runtime::{
    Attachment, ContainerConfig, Error, ExecRequest, Runtime as _, Session, Size,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use crate::process_runtime::fixture::{Fixture, NONE, TIMEOUT, nap, processes, script, until};

const LONG: Duration = Duration::from_secs(20);

fn words(command: &[&str]) -> Vec<String> {
    command.iter().map(|&word| word.to_owned()).collect()
}

async fn read_until(session: &mut Session, expected: &str) -> String {
    let mut text = String::new();
    let stdout = session.stdout.as_mut().unwrap();
    let read = async {
        let mut chunk = [0; 1024];
        while !text.contains(expected) {
            let count = stdout.read(&mut chunk).await.unwrap();
            assert!(count > 0, "it ended after {text:?}");
            text.push_str(&String::from_utf8_lossy(&chunk[..count]));
        }
    };
    assert!(
        timeout(TIMEOUT, read).await.is_ok(),
        "no {expected:?} in {text:?}"
    );
    text
}

async fn type_in(session: &mut Session, text: &str) {
    session
        .stdin
        .as_mut()
        .unwrap()
        .write_all(text.as_bytes())
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_run_within_the_container() {
    for host_pid in [false, true] {
        let fixture = Fixture::with(|pod| pod.host_pid = host_pid).await;
        let nap = nap();
        let app = ContainerConfig {
            env: vec![("WHO".to_owned(), "app".to_owned())],
            ..script(&format!("echo mine > /etc/mine; echo up; sleep {nap}"))
        };
        let id = fixture.start(&app).await;
        until("it is up", async || fixture.log(&app).contains("up")).await;
        let exec = async |command: &[&str]| {
            fixture
                .runtime
                .exec(&id, &words(command), LONG)
                .await
                .unwrap()
        };
        let output = exec(&["sh", "-c", "cat /etc/mine; echo $WHO >&2; exit 6"]).await;
        assert_eq!(
            (output.code, String::from_utf8(output.text).unwrap()),
            (6, "mine\napp\n".to_owned())
        );
        assert_eq!(exec(&["sh", "-c", "kill -9 $$"]).await.code, 137);
        let missing = exec(&["no-such-command"]).await;
        assert_eq!(missing.code, 127);
        assert!(
            String::from_utf8(missing.text)
                .unwrap()
                .contains("executable file not found in $PATH")
        );
        // What is left behind holds the pipe; the command has ended all the same.
        let quick = Instant::now();
        assert_eq!(
            exec(&["sh", "-c", &format!("sleep {nap} & echo left")])
                .await
                .code,
            0
        );
        assert!(quick.elapsed() < LONG);
        fixture.end().await;
        assert_eq!(processes(&nap), NONE, "and ends with the container");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_takes_too_long_is_ended() {
    for host_pid in [false, true] {
        let fixture = Fixture::with(|pod| pod.host_pid = host_pid).await;
        let (nap, late) = (nap(), nap());
        let id = fixture.start(&script(&format!("sleep {nap}"))).await;
        let command = words(&["sh", "-c", &format!("sleep {late}; true")]);
        let error = fixture
            .runtime
            .exec(&id, &command, Duration::from_millis(300))
            .await
            .unwrap_err();
        assert!(matches!(error, Error::TimedOut(_)), "{error:?}");
        until("it is gone", async || processes(&late).is_empty()).await;
        until("the container is not", async || processes(&nap).len() >= 2).await;
        fixture.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_of_a_session_are_apart() {
    let fixture = Fixture::new().await;
    let id = fixture.start(&script(&format!("sleep {}", nap()))).await;
    let request = ExecRequest {
        command: words(&["sh", "-c", "cat; echo failed >&2; exit 4"]),
        streams: Attachment {
            stdin: true,
            stdout: true,
            stderr: true,
            tty: false,
        },
    };
    let mut session = fixture.runtime.exec_session(&id, &request).await.unwrap();
    type_in(&mut session, "typed\n").await;
    session.stdin = None;
    let (mut out, mut err) = (String::new(), String::new());
    session
        .stdout
        .unwrap()
        .read_to_string(&mut out)
        .await
        .unwrap();
    session
        .stderr
        .unwrap()
        .read_to_string(&mut err)
        .await
        .unwrap();
    assert_eq!((out.as_str(), err.as_str()), ("typed\n", "failed\n"));
    assert_eq!(session.exit.await, Ok(4));
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_has_a_size_and_ends_with_its_session() {
    for host_pid in [false, true] {
        let fixture = Fixture::with(|pod| pod.host_pid = host_pid).await;
        let (nap, late) = (nap(), nap());
        let id = fixture.start(&script(&format!("sleep {nap}"))).await;
        let streams = Attachment {
            stdin: true,
            stdout: true,
            stderr: false,
            tty: true,
        };
        let request = ExecRequest {
            command: words(&["sh"]),
            streams,
        };
        let mut session = fixture.runtime.exec_session(&id, &request).await.unwrap();
        session
            .resize
            .as_ref()
            .unwrap()
            .send(Size {
                width: 132,
                height: 43,
            })
            .await
            .unwrap();
        until("it has that size", async || {
            type_in(&mut session, "stty size; echo a-tty-$(tty | grep -c dev)\n").await;
            read_until(&mut session, "a-tty-1").await.contains("43 132")
        })
        .await;
        type_in(&mut session, "exit 9\n").await;
        assert_eq!(timeout(TIMEOUT, &mut session.exit).await.unwrap(), Ok(9));
        // A client that disconnects ends the command.
        let mut session = fixture.runtime.exec_session(&id, &request).await.unwrap();
        type_in(&mut session, &format!("echo on; sleep {late}\n")).await;
        until("it runs", async || {
            !processes(&format!("sleep {late}")).is_empty()
        })
        .await;
        drop(session);
        until("it is gone", async || processes(&late).is_empty()).await;
        fixture.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_attaches_reads_and_types() {
    let fixture = Fixture::new().await;
    let app = ContainerConfig {
        stdin: true,
        stdin_once: true,
        ..script("echo ready; while read line; do echo got $line; done; echo over; exit 5")
    };
    let id = fixture.start(&app).await;
    let streams = Attachment {
        stdin: true,
        stdout: true,
        stderr: true,
        tty: false,
    };
    let mut session = fixture.runtime.attach(&id, streams).await.unwrap();
    type_in(&mut session, "one\n").await;
    read_until(&mut session, "got one\n").await;
    // A second one sees the same, and leaves without consequences.
    let watch = Attachment {
        stdin: false,
        stdout: true,
        stderr: false,
        tty: false,
    };
    let mut second = fixture.runtime.attach(&id, watch).await.unwrap();
    type_in(&mut session, "two\n").await;
    read_until(&mut second, "got two\n").await;
    drop(second);
    session.stdin = None;
    read_until(&mut session, "over\n").await;
    assert_eq!(timeout(TIMEOUT, session.exit).await.unwrap(), Ok(5));
    assert_eq!(fixture.exit(&id).await.code, 5);
    assert!(
        fixture
            .log(&app)
            .ends_with("stdout F got one\nstdout F got two\nstdout F over\n")
    );
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_with_a_terminal_has_one() {
    let fixture = Fixture::new().await;
    let app = ContainerConfig {
        stdin: true,
        tty: true,
        ..script("test -t 0 && echo terminal; read line; stty size; exit 3")
    };
    let id = fixture.start(&app).await;
    let streams = Attachment {
        stdin: true,
        stdout: true,
        stderr: false,
        tty: true,
    };
    let mut session = fixture.runtime.attach(&id, streams).await.unwrap();
    session
        .resize
        .as_ref()
        .unwrap()
        .send(Size {
            width: 90,
            height: 30,
        })
        .await
        .unwrap();
    // Typed after the size on the same connection, and so seen after it.
    tokio::time::sleep(Duration::from_millis(50)).await;
    type_in(&mut session, "go\n").await;
    read_until(&mut session, "30 90").await;
    assert_eq!(fixture.exit(&id).await.code, 3);
    assert!(
        fixture.log(&app).contains("stdout F terminal"),
        "{}",
        fixture.log(&app)
    );
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renamed_log_goes_on_in_a_new_file() {
    let fixture = Fixture::new().await;
    let app = ContainerConfig {
        stdin: true,
        ..script("echo before; read line; echo after")
    };
    let id = fixture.start(&app).await;
    until("it has begun", async || {
        fixture.log(&app).contains("before")
    })
    .await;
    let path = fixture.log_path(&app);
    let renamed = path.with_extension("log.1");
    std::fs::rename(&path, &renamed).unwrap();
    fixture.runtime.reopen_log(&id).await.unwrap();
    let streams = Attachment {
        stdin: true,
        ..Attachment::default()
    };
    let mut session = fixture.runtime.attach(&id, streams).await.unwrap();
    type_in(&mut session, "go\n").await;
    assert_eq!(fixture.exit(&id).await.code, 0);
    assert_eq!(fixture.log(&app), "stdout F after\n");
    assert!(
        std::fs::read_to_string(renamed)
            .unwrap()
            .ends_with("stdout F before\n")
    );
    fixture.end().await;
}
