//! What an unprivileged container does not get of the machine: devices, sockets, processes without end, other pods' ports.

use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kennel_node::runtime::{Capabilities, ContainerConfig, Error, Runtime as _, Security};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::process_runtime::fixture::{
    Fixture, NONE, PIDS_LIMIT, TIMEOUT, nap, processes, script, stdout, unique, until, volume,
};

fn privileged(app: ContainerConfig) -> ContainerConfig {
    ContainerConfig {
        security: Security {
            privileged: true,
            ..Security::default()
        },
        ..app
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn its_devices_are_the_usual_ones() {
    let fixture = Fixture::new().await;
    let app = script("cd /dev; echo *; ls pts; test -c pts/ptmx && echo terminals; ls shm | wc -l");
    let expected = [
        "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero",
        "ptmx",
        "terminals",
        "0",
    ];
    assert_eq!(fixture.output(&app).await, stdout(&expected));
    // They work, for everybody.
    let app = ContainerConfig {
        security: Security {
            user: Some(1234),
            ..Security::default()
        },
        ..script(
            "echo x > /dev/null && head -c 3 /dev/zero | wc -c && head -c 2 /dev/urandom | wc -c
             echo x > /dev/shm/x && cat /dev/shm/x && echo on /dev/fd: $(echo y | cat /dev/fd/0)",
        )
    };
    let expected = stdout(&["3", "2", "x", "on /dev/fd: y"]);
    assert_eq!(fixture.output(&app).await, expected);
    let machines = std::fs::read_dir("/dev").unwrap().count();
    let all = privileged(script("ls -A /dev | wc -l"));
    let expected = stdout(&[&machines.to_string()]);
    assert_eq!(fixture.output(&all).await, expected, "privileged: all");
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_is_usable_only_if_it_was_asked_for() {
    let fixture = Fixture::new().await;
    // The kernel's log is a device that every machine has, and no container.
    let make = "mknod /tmp/log c 1 11 2>/dev/null || { echo refused; exit 0; }";
    let app = script(&format!(
        "{make}; head -c 0 /tmp/log 2>/dev/null && echo opened || echo refused"
    ));
    assert_eq!(fixture.output(&app).await, stdout(&["refused"]));
    let host = tempfile::tempdir().unwrap();
    let made = script(
        "mknod /v/log c 1 11 2>/dev/null && cat /v/log > /dev/null 2>&1 && echo opened || echo refused",
    );
    let shared = ContainerConfig {
        mounts: vec![volume(host.path(), "/v", false)],
        ..made
    };
    assert_eq!(fixture.output(&shared).await, stdout(&["refused"]));
    // Where cgroups have no device rules, `nodev` mounts refuse it, even with CAP_MKNOD.
    let able = ContainerConfig {
        mounts: vec![volume(host.path(), "/v", false)],
        security: Security {
            capabilities: Capabilities {
                add: vec!["MKNOD".to_owned()],
                ..Capabilities::default()
            },
            ..Security::default()
        },
        ..script(
            r#"for dir in /dev /v /tmp; do
                 rm -f $dir/node; mknod $dir/node c 1 3 && echo x > $dir/node || echo refused
               done 2>/dev/null
               awk '($5 == "/dev" || $5 == "/v") && $6 ~ /nodev/ { print $5 }' /proc/self/mountinfo | sort"#,
        )
    };
    let expected = stdout(&["refused", "refused", "refused", "/dev", "/v"]);
    assert_eq!(fixture.output(&able).await, expected);
    let asked = ContainerConfig {
        mounts: vec![volume("/dev/full".as_ref(), "/dev/mine", false)],
        ..script("echo x > /dev/mine || echo it is full")
    };
    let log = fixture.output(&asked).await;
    assert!(log.contains("stdout F it is full"), "{log}");
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_machines_sockets_are_out_of_reach_unless_they_are_volumes() {
    let fixture = Fixture::new().await;
    let path = format!("/run/{}.sock", unique("kennel-test"));
    let listener = UnixListener::bind(&path).unwrap();
    let app = script("ls -A /run; touch /run/mine && ls -d /run/lock /run/mine");
    let expected = stdout(&["lock", "/run/lock", "/run/mine"]);
    assert_eq!(fixture.output(&app).await, expected);
    assert!(!std::path::Path::new("/run/mine").exists());

    let connect = "$s = IO::Socket::UNIX->new(Peer => shift) or die; print scalar(<$s>), qq(\n)";
    let asked = ContainerConfig {
        mounts: vec![volume(path.as_ref(), &path, false)],
        command: ["perl", "-MIO::Socket::UNIX", "-e", connect, &path]
            .map(str::to_owned)
            .to_vec(),
        args: Vec::new(),
        ..script("")
    };
    let answer = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"hello").unwrap();
    });
    assert_eq!(fixture.output(&asked).await, stdout(&["hello"]));
    answer.join().unwrap();
    std::fs::remove_file(path).unwrap();
    fixture.end().await;
}

/// The directory of a process's group in the version 1 hierarchy of device rules, if Kennel has groups there.
fn device_group(pid: i32) -> Option<PathBuf> {
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let mut lines = groups.lines().map(|line| line.splitn(3, ':'));
    let path = lines.find_map(|mut fields| {
        let controllers = fields.nth(1)?;
        let path = fields.next()?;
        controllers.contains("devices").then(|| path.to_owned())
    })?;
    let root = Path::new("/sys/fs/cgroup/devices");
    path.starts_with("/kennel/")
        .then(|| root.join(path.trim_start_matches('/')))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_group_of_a_container_denies_all_devices_but_the_usual_ones() {
    let fixture = Fixture::new().await;
    let nap = nap();
    let id = fixture.start(&script(&format!("exec sleep {nap}"))).await;
    until("it runs", async || !processes(&nap).is_empty()).await;
    let group = processes(&nap).into_iter().find_map(device_group);
    if let Some(group) = group {
        let rules = std::fs::read_to_string(group.join("devices.list")).unwrap();
        let has = |rule: &str| rules.lines().any(|line| line == rule);
        assert!(has("c 1:3 rwm"), "{rules}");
        assert!(!rules.lines().any(|line| line.starts_with('a')), "{rules}");
    } else {
        kennel_test_support::skip("there is no writable version 1 hierarchy of device rules");
    }
    fixture.runtime.stop(&id, Duration::ZERO).await.unwrap();
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_cannot_take_all_processes_of_the_machine() {
    for cgroup in ["", "/kennel-test/pids"] {
        let fixture = Fixture::with(|pod| {
            if !cgroup.is_empty() {
                pod.cgroup = format!("{cgroup}{}", pod.pod.uid);
            }
        })
        .await;
        let nap = nap();
        let app = script(&format!(
            "i=0; while [ $i -lt {} ]; do sleep {nap} & i=$((i+1)); done; echo all of them",
            PIDS_LIMIT * 2
        ));
        let exit = fixture.run(&app).await;
        let log = fixture.log(&app);
        assert_ne!(exit.code, 0, "{log}");
        assert!(log.to_lowercase().contains("fork"), "{log}");
        fixture.end().await;
    }
}

/// A server in a container: sends its name on each connection.
fn serves(port: u16) -> ContainerConfig {
    let program = "$| = 1; \
        $s = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => shift, Listen => 5) or die; \
        print qq(listening\\n); while ($c = $s->accept) { print $c 'pod'; close $c }";
    ContainerConfig {
        command: [
            "perl",
            "-MIO::Socket::INET",
            "-e",
            program,
            &port.to_string(),
        ]
        .map(str::to_owned)
        .to_vec(),
        args: Vec::new(),
        ..script("")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ports_are_forwarded_only_to_what_the_pod_listens_on() {
    let fixture = Fixture::new().await;
    // What others of the machine listen on.
    let foreign = TcpListener::bind("127.0.0.1:0").unwrap();
    let foreign_port = foreign.local_addr().unwrap().port();
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let app = serves(port);
    fixture.start(&app).await;
    until("it listens", async || {
        fixture.log(&app).contains("listening")
    })
    .await;
    let mut stream = fixture
        .runtime
        .connect(&fixture.sandbox, port)
        .await
        .unwrap();
    let mut heard = String::new();
    stream.read_to_string(&mut heard).await.unwrap();
    assert_eq!(heard, "pod");
    stream.shutdown().await.unwrap_or_default();

    let refused = fixture
        .runtime
        .connect(&fixture.sandbox, foreign_port)
        .await;
    let Err(Error::Failed(refused)) = refused else {
        panic!("it reached what is not the pod's");
    };
    let expected = format!("failed to connect to localhost:{foreign_port}: connection refused");
    assert!(refused.starts_with(&expected), "{refused}");
    foreign.set_nonblocking(true).unwrap();
    assert!(foreign.accept().is_err(), "nobody has connected");
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_joins_the_processes_of_its_target_and_ends_with_them() {
    let fixture = Fixture::new().await;
    let seconds = nap();
    let target = fixture
        .start(&script(&format!("exec sleep {seconds}")))
        .await;
    let first = "tr '\\0' ' ' < /proc/1/cmdline; echo";
    let joining = |text: &str| ContainerConfig {
        target: target.clone(),
        ..script(text)
    };
    let expected = stdout(&[&format!("sleep {seconds} ")]);
    assert_eq!(fixture.output(&joining(first)).await, expected);
    // Its orphans are the target's to reap, and end with it nevertheless.
    let other = nap();
    let leaves = joining(&format!("sleep {other} & echo left"));
    assert_eq!(fixture.output(&leaves).await, stdout(&["left"]));
    assert_eq!(processes(&format!("sleep {other}")), NONE);
    let debugger = joining("sleep 5000");
    let id = fixture.start(&debugger).await;
    let words: Vec<String> = ["sh", "-c", first].map(str::to_owned).to_vec();
    let exec = fixture.runtime.exec(&id, &words, TIMEOUT).await.unwrap();
    let said = String::from_utf8_lossy(&exec.text).into_owned();
    assert_eq!(said, format!("sleep {seconds} \n"));
    fixture
        .runtime
        .stop(&target, std::time::Duration::ZERO)
        .await
        .unwrap();
    assert_eq!(fixture.exit(&id).await.code, 137);
    // A target that does not run cannot be joined.
    let late = fixture.create(&joining("true")).await;
    let Err(Error::Failed(why)) = fixture.runtime.start(&late).await else {
        panic!("it has started");
    };
    assert_eq!(why, "the target container is not running");
    fixture.end().await;
}
