//! The lifecycle of a pod, from its sandbox to its removal.

use std::time::Duration;

use kennel_core::pod::State;
use kennel_node::runtime::cri::Cri;
use kennel_node::runtime::{Error, Runtime};
use kennel_testkit::machine::possible;
use kennel_testkit::{Deadline, eventually};

use crate::fixture::{DEADLINE, Fixture, IMAGE, Started, words};

/// An agent of another data directory on the same containerd does not see a pod.
async fn unknown_to_others(fixture: &Fixture, uid: &str) {
    let dir = tempfile::tempdir().unwrap();
    let other = Cri::new(&fixture.containerd.socket(), dir.path());
    assert!(other.list().await.unwrap().is_empty());
    assert!(other.inspect(uid).await.unwrap().is_none());
}

#[tokio::test]
async fn a_pod_survives_an_agent_restart_and_is_removed_completely() {
    if !possible() {
        return;
    }
    let fixture = Fixture::new().await;
    let pod = fixture.start(fixture.pod("web")).await;
    let uid = &pod.config.pod.uid;
    let config = fixture
        .script(
            "app",
            "trap 'exit 5' TERM; echo started; while :; do sleep 0.1; done",
        )
        .await;
    let id = fixture
        .cri
        .create(&pod.config, &pod.sandbox, &config)
        .await
        .unwrap();
    let made = fixture.inspect(uid).await;
    assert_eq!(
        made.sandbox.as_ref().map(|sandbox| sandbox.ready),
        Some(true)
    );
    assert_eq!(made.runs[0].state, State::Created);

    fixture.cri.start(&id).await.unwrap();
    assert_eq!(
        fixture.changes.lock().await.recv().await.as_ref(),
        Some(uid),
        "our own change is reported at once"
    );
    let run = fixture.inspect(uid).await.runs.remove(0);
    assert!(run.is_running(), "{run:?}");
    assert_eq!(
        (run.name.as_str(), run.attempt, run.image.as_str()),
        ("app", 0, IMAGE)
    );
    assert!(run.image_id.starts_with("sha256:"), "{}", run.image_id);

    // The same once more: nothing is doubled, and nothing is wrong about it.
    let again = fixture
        .cri
        .create(&pod.config, &pod.sandbox, &config)
        .await
        .unwrap();
    assert_eq!(again, id);
    fixture.cri.start(&id).await.unwrap();
    assert_eq!(
        fixture.cri.start_sandbox(&pod.config).await.unwrap(),
        pod.sandbox
    );

    // Another agent, with no memory of any of this.
    let heir = Cri::new(&fixture.containerd.socket(), fixture.containerd.directory());
    let found = heir.list().await.unwrap().remove(0);
    assert_eq!(found.pod, pod.config.pod);
    assert_eq!(found.observed.runs, [run]);
    unknown_to_others(&fixture, uid).await;

    let log = fixture.logs("web").join("app/0.log");
    wait_for_start(&log);
    fixture
        .cri
        .stop(&id, Duration::from_secs(30))
        .await
        .unwrap();
    let exit = fixture.exit_of(uid, &id).await;
    assert_eq!(
        (exit.code, exit.reason.as_str()),
        (5, "Error"),
        "it was asked, not killed"
    );
    fixture.cri.stop(&id, Duration::ZERO).await.unwrap();

    let log = std::fs::read_to_string(log).unwrap();
    let line: Vec<&str> = log.trim_end().splitn(4, ' ').collect();
    assert_eq!(line[1..], ["stdout", "F", "started"], "{log}");

    check_removal(&fixture, &pod, &id).await;
}

/// Waits until a script has said that it handles signals.
fn wait_for_start(log: &std::path::Path) {
    eventually(Deadline::seconds(60), || {
        let text = std::fs::read_to_string(log).unwrap_or_default();
        text.contains("started").then_some(()).ok_or(text)
    });
}

async fn check_removal(fixture: &Fixture, pod: &Started, id: &str) {
    fixture.cri.remove(id).await.unwrap();
    fixture.cri.remove(id).await.unwrap();
    for _ in 0..2 {
        fixture.cri.stop_sandbox(&pod.sandbox).await.unwrap();
        fixture.cri.remove_sandbox(&pod.sandbox).await.unwrap();
    }
    assert!(fixture.cri.list().await.unwrap().is_empty());
    let group = pod.config.cgroup.trim_start_matches('/');
    for hierarchy in std::fs::read_dir("/sys/fs/cgroup").unwrap().flatten() {
        assert!(
            !hierarchy.path().join(group).exists(),
            "{hierarchy:?} keeps the pod's group"
        );
    }
    assert!(
        fixture
            .cri
            .inspect(&pod.config.pod.uid)
            .await
            .unwrap()
            .is_none()
    );
}

#[tokio::test]
async fn a_container_that_never_started_is_replaced_and_others_are_not() {
    if !possible() {
        return;
    }
    let fixture = Fixture::new().await;
    let pod = fixture.start(fixture.pod("web")).await;
    let mut config = fixture.script("app", "exit 1").await;
    let first = fixture
        .cri
        .create(&pod.config, &pod.sandbox, &config)
        .await
        .unwrap();
    // The agent ended here; meanwhile the spec was changed.
    config.args = vec!["exit 7".to_owned()];
    let second = fixture
        .cri
        .create(&pod.config, &pod.sandbox, &config)
        .await
        .unwrap();
    assert_ne!(first, second);
    fixture.cri.start(&second).await.unwrap();
    let exit = fixture.exit_of(&pod.config.pod.uid, &second).await;
    assert_eq!(exit.code, 7);
    assert_eq!(fixture.inspect(&pod.config.pod.uid).await.runs.len(), 1);

    // A sandbox that ended is another attempt's predecessor.
    fixture.cri.stop_sandbox(&pod.sandbox).await.unwrap();
    let mut next = pod.config.clone();
    next.attempt = 1;
    let newer = fixture.cri.start_sandbox(&next).await.unwrap();
    let found = fixture
        .cri
        .inspect(&pod.config.pod.uid)
        .await
        .unwrap()
        .unwrap();
    let sandbox = found.observed.sandbox.unwrap();
    assert_eq!(
        (sandbox.id, sandbox.attempt, sandbox.ready),
        (newer, 1, true)
    );
    assert_eq!(found.stale, [pod.sandbox]);
}

#[tokio::test]
async fn exec_logs_and_usage() {
    if !possible() {
        return;
    }
    let fixture = Fixture::new().await;
    let pod = fixture.start(fixture.pod("web")).await;
    let config = fixture
        .script("app", "while :; do echo tick; sleep 0.1; done")
        .await;
    let id = fixture.run(&pod, &config).await;

    let command = ["/bin/sh", "-c", "echo out; echo err >&2; exit 3"].map(str::to_owned);
    let output = fixture.cri.exec(&id, &command, DEADLINE).await.unwrap();
    assert_eq!(
        (output.code, output.text.as_slice()),
        (3, &b"out\nerr\n"[..])
    );
    let slow = fixture
        .cri
        .exec(&id, &words("/bin/sleep 60"), Duration::from_secs(1))
        .await;
    assert!(matches!(slow, Err(Error::TimedOut(_))), "{slow:?}");
    let slow = fixture
        .cri
        .exec(&id, &words("/bin/sleep 60"), Duration::from_millis(300))
        .await;
    assert!(matches!(slow, Err(Error::TimedOut(_))), "{slow:?}");
    let gone = fixture
        .cri
        .exec("0123", &words("/bin/true"), DEADLINE)
        .await;
    assert!(matches!(gone, Err(Error::NotFound(_))), "{gone:?}");

    let log = fixture.logs("web").join("app/0.log");
    let old = fixture.logs("web").join("app/0.log.old");
    std::fs::rename(&log, &old).unwrap();
    fixture.cri.reopen_log(&id).await.unwrap();
    kennel_testkit::eventually(kennel_testkit::Deadline::seconds(30), || {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        text.contains("stdout F tick")
            .then_some(())
            .ok_or("nothing in the new file")
    });

    let usage = fixture.cri.usage(false).await.unwrap();
    assert_eq!(usage.len(), 1);
    assert_eq!(
        (usage[0].pod.as_str(), usage[0].container.as_str()),
        ("uid-of-web", "app")
    );
    assert!(usage[0].memory > 0 && usage[0].cpu > 0, "{usage:?}");
    assert_eq!(usage[0].id, id);
    let group = kennel_shim::cgroup::Cgroups::find().group(&usage[0].cgroup);
    assert!(group.stats().memory_usage > Some(0), "{usage:?}");
    let directory = fixture.cri.image_dir().unwrap();
    assert!(
        directory.starts_with(fixture.containerd.directory()),
        "{}",
        directory.display()
    );
    let about = fixture.cri.about();
    assert_eq!((about.name.as_str(), about.images), ("containerd", true));
    assert!(
        about.version.starts_with(char::is_numeric),
        "{}",
        about.version
    );
}
