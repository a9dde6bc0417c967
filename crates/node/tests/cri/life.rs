//! The life of a pod, from its sandbox to its end, and who sees it.

use std::time::Duration;

use kennel_core::pod::State;
use kennel_node::runtime::cri::Cri;
use kennel_node::runtime::{Error, Runtime};
use kennel_testkit::machine::possible;

use crate::world::{IMAGE, PATIENCE, Started, World, words};

#[tokio::test]
async fn a_pod_lives_is_taken_up_again_and_leaves_nothing() {
    if !possible() {
        return;
    }
    let world = World::new().await;
    let pod = world.start(world.pod("web")).await;
    let uid = &pod.config.pod.uid;
    let config = world
        .script(
            "app",
            "echo started; trap 'exit 5' TERM; while :; do sleep 0.1; done",
        )
        .await;
    let id = world
        .cri
        .create(&pod.config, &pod.sandbox, &config)
        .await
        .unwrap();
    let made = world.look(uid).await;
    assert_eq!(
        made.sandbox.as_ref().map(|sandbox| sandbox.ready),
        Some(true)
    );
    assert_eq!(made.runs[0].state, State::Created);

    world.cri.start(&id).await.unwrap();
    assert_eq!(
        world.changes.lock().await.recv().await.as_ref(),
        Some(uid),
        "what we did is told at once"
    );
    let run = world.look(uid).await.runs.remove(0);
    assert!(run.is_running(), "{run:?}");
    assert_eq!(
        (run.name.as_str(), run.attempt, run.image.as_str()),
        ("app", 0, IMAGE)
    );
    assert!(run.image_id.starts_with("sha256:"), "{}", run.image_id);

    // The same once more: nothing is doubled, and nothing is wrong about it.
    let again = world
        .cri
        .create(&pod.config, &pod.sandbox, &config)
        .await
        .unwrap();
    assert_eq!(again, id);
    world.cri.start(&id).await.unwrap();
    assert_eq!(
        world.cri.start_sandbox(&pod.config).await.unwrap(),
        pod.sandbox
    );

    // Another agent, with no memory of any of this.
    let heir = Cri::connect(&world.containerd.socket()).await.unwrap();
    let found = heir.list().await.unwrap().remove(0);
    assert_eq!(found.pod, pod.config.pod);
    assert_eq!(found.observed.runs, [run]);

    world.cri.stop(&id, Duration::from_secs(30)).await.unwrap();
    let exit = world.ended(uid, &id).await;
    assert_eq!(
        (exit.code, exit.reason.as_str()),
        (5, "Error"),
        "it was asked, not killed"
    );
    world.cri.stop(&id, Duration::ZERO).await.unwrap();

    let log = std::fs::read_to_string(world.logs("web").join("app/0.log")).unwrap();
    let line: Vec<&str> = log.trim_end().splitn(4, ' ').collect();
    assert_eq!(line[1..], ["stdout", "F", "started"], "{log}");

    all_of_it_is_taken_away(&world, &pod, &id).await;
}

async fn all_of_it_is_taken_away(world: &World, pod: &Started, id: &str) {
    world.cri.remove(id).await.unwrap();
    world.cri.remove(id).await.unwrap();
    for _ in 0..2 {
        world.cri.stop_sandbox(&pod.sandbox).await.unwrap();
        world.cri.remove_sandbox(&pod.sandbox).await.unwrap();
    }
    assert!(world.cri.list().await.unwrap().is_empty());
    let group = pod.config.cgroup.trim_start_matches('/');
    for hierarchy in std::fs::read_dir("/sys/fs/cgroup").unwrap().flatten() {
        assert!(
            !hierarchy.path().join(group).exists(),
            "{hierarchy:?} keeps the pod's group"
        );
    }
    assert!(world.cri.look(&pod.config.pod.uid).await.unwrap().is_none());
}

#[tokio::test]
async fn what_was_made_and_never_begun_is_made_anew_and_others_are_left_alone() {
    if !possible() {
        return;
    }
    let world = World::new().await;
    let pod = world.start(world.pod("web")).await;
    let mut config = world.script("app", "exit 1").await;
    let first = world
        .cri
        .create(&pod.config, &pod.sandbox, &config)
        .await
        .unwrap();
    // The agent ended here; meanwhile the spec was changed.
    config.args = vec!["exit 7".to_owned()];
    let second = world
        .cri
        .create(&pod.config, &pod.sandbox, &config)
        .await
        .unwrap();
    assert_ne!(first, second);
    world.cri.start(&second).await.unwrap();
    let exit = world.ended(&pod.config.pod.uid, &second).await;
    assert_eq!(exit.code, 7);
    assert_eq!(world.look(&pod.config.pod.uid).await.runs.len(), 1);

    // A sandbox that ended is another attempt's predecessor.
    world.cri.stop_sandbox(&pod.sandbox).await.unwrap();
    let mut next = pod.config.clone();
    next.attempt = 1;
    let newer = world.cri.start_sandbox(&next).await.unwrap();
    let found = world.cri.look(&pod.config.pod.uid).await.unwrap().unwrap();
    let sandbox = found.observed.sandbox.unwrap();
    assert_eq!(
        (sandbox.id, sandbox.attempt, sandbox.ready),
        (newer, 1, true)
    );
    assert_eq!(found.stale, [pod.sandbox]);
}

#[tokio::test]
async fn commands_logs_and_figures() {
    if !possible() {
        return;
    }
    let world = World::new().await;
    let pod = world.start(world.pod("web")).await;
    let config = world
        .script("app", "while :; do echo tick; sleep 0.1; done")
        .await;
    let id = world.run(&pod, &config).await;

    let command = ["/bin/sh", "-c", "echo out; echo err >&2; exit 3"].map(str::to_owned);
    let output = world.cri.exec(&id, &command, PATIENCE).await.unwrap();
    assert_eq!(
        (output.code, output.text.as_slice()),
        (3, &b"out\nerr\n"[..])
    );
    let slow = world
        .cri
        .exec(&id, &words("/bin/sleep 60"), Duration::from_secs(1))
        .await;
    assert!(matches!(slow, Err(Error::TimedOut(_))), "{slow:?}");
    let slow = world
        .cri
        .exec(&id, &words("/bin/sleep 60"), Duration::from_millis(300))
        .await;
    assert!(matches!(slow, Err(Error::TimedOut(_))), "{slow:?}");
    let gone = world.cri.exec("0123", &words("/bin/true"), PATIENCE).await;
    assert!(matches!(gone, Err(Error::NotFound(_))), "{gone:?}");

    let log = world.logs("web").join("app/0.log");
    let old = world.logs("web").join("app/0.log.old");
    std::fs::rename(&log, &old).unwrap();
    world.cri.reopen_log(&id).await.unwrap();
    kennel_testkit::eventually(kennel_testkit::Deadline::seconds(30), || {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        text.contains("stdout F tick")
            .then_some(())
            .ok_or("nothing in the new file")
    });

    let usage = world.cri.usage().await.unwrap();
    assert_eq!(usage.len(), 1);
    assert_eq!(
        (usage[0].pod.as_str(), usage[0].container.as_str()),
        ("uid-of-web", "app")
    );
    assert!(usage[0].memory > 0 && usage[0].cpu > 0, "{usage:?}");
    let directory = world.cri.image_dir().unwrap();
    assert!(
        directory.starts_with(world.containerd.directory()),
        "{}",
        directory.display()
    );
    let about = world.cri.about();
    assert_eq!((about.name.as_str(), about.images), ("containerd", true));
    assert!(
        about.version.starts_with(char::is_numeric),
        "{}",
        about.version
    );
}
