//! Containers start, write logs, exit, and are found again by the next agent.

use std::time::Duration;

use kennel_core::pod::State;
use kennel_node::runtime::{ContainerConfig, Error, Runtime as _};

use crate::process_runtime::fixture::{Fixture, NONE, nap, processes, script, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_container_runs_and_its_end_is_told() {
    let fixture = Fixture::new().await;
    let app = script("echo to stdout; echo to stderr >&2; printf unfinished; exit 3");
    let exit = fixture.run(&app).await;
    assert_eq!((exit.code, exit.reason.as_str()), (3, ""));
    assert!(exit.started_at.as_secs() > 1_700_000_000 && exit.finished_at >= exit.started_at);
    let mut lines: Vec<String> = fixture.log(&app).lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(
        lines,
        [
            "stderr F to stderr",
            "stdout F to stdout",
            "stdout P unfinished"
        ]
    );
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn signals_and_missing_commands_are_recorded() {
    let fixture = Fixture::new().await;
    assert_eq!(
        fixture.run(&script("kill -9 $$; true")).await.code,
        0,
        "PID 1 is spared by itself"
    );
    assert_eq!(
        fixture
            .run(&script("sh -c 'kill -9 $$'; exit $?"))
            .await
            .code,
        137
    );
    let missing = ContainerConfig {
        command: vec!["no-such-command".to_owned()],
        args: vec![],
        ..script("")
    };
    let id = fixture.create(&missing).await;
    let error = fixture.runtime.start(&id).await.unwrap_err();
    let expected = "exec: \"no-such-command\": executable file not found in $PATH";
    assert_eq!(error, Error::Failed(expected.to_owned()));
    let exit = fixture.exit(&id).await;
    assert_eq!(
        (exit.code, exit.reason.as_str(), exit.message.as_str()),
        (128, "StartError", expected)
    );
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_container_is_made_and_started_once() {
    let fixture = Fixture::new().await;
    let nap = nap();
    let app = script(&format!("sleep {nap}"));
    let id = fixture.create(&app).await;
    assert_eq!(
        fixture.create(&app).await,
        id,
        "made and not started: made anew"
    );
    let (a, b) = tokio::join!(fixture.runtime.start(&id), fixture.runtime.start(&id));
    a.unwrap();
    b.unwrap();
    fixture.runtime.start(&id).await.unwrap();
    assert!(
        fixture
            .runtime
            .create(&fixture.pod, &fixture.sandbox, &app)
            .await
            .is_err()
    );
    until("it sleeps", async || {
        processes(&format!("sleep {nap}")).len() == 2
    })
    .await;
    assert!(matches!(
        fixture.state(&id).await.unwrap().state,
        State::Running { .. }
    ));
    assert!(
        fixture.runtime.remove(&id).await.is_err(),
        "what runs is not removed"
    );
    fixture.end().await;
    assert_eq!(processes(&nap), NONE, "ended with its sandbox");
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_asks_first_and_kills_after_the_grace() {
    let fixture = Fixture::new().await;
    let nap = nap();
    let polite = script(&format!(
        "trap 'echo bye; exit 7' TERM; echo ready; sleep {nap} & wait"
    ));
    let id = fixture.start(&polite).await;
    until("it is ready", async || {
        fixture.log(&polite).contains("ready")
    })
    .await;
    fixture
        .runtime
        .stop(&id, Duration::from_secs(20))
        .await
        .unwrap();
    assert_eq!(fixture.exit(&id).await.code, 7);
    assert!(fixture.log(&polite).contains("bye"));

    let own = ContainerConfig {
        stop_signal: "SIGUSR1".to_owned(),
        ..script("trap 'exit 8' USR1; echo ready; while :; do sleep 0.1; done")
    };
    let id = fixture.start(&own).await;
    until("it is ready", async || fixture.log(&own).contains("ready")).await;
    fixture
        .runtime
        .stop(&id, Duration::from_secs(20))
        .await
        .unwrap();
    assert_eq!(fixture.exit(&id).await.code, 8);

    let deaf = script(&format!(
        "trap '' TERM; echo ready; while :; do sleep {nap}; done"
    ));
    let id = fixture.start(&deaf).await;
    until("it is ready", async || fixture.log(&deaf).contains("ready")).await;
    fixture
        .runtime
        .stop(&id, Duration::from_millis(200))
        .await
        .unwrap();
    assert_eq!(fixture.exit(&id).await.code, 137);
    fixture
        .runtime
        .stop(&id, Duration::from_secs(1))
        .await
        .unwrap();
    assert_eq!(processes(&nap), NONE);
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_container_leaves_behind_ends_with_it() {
    for host_pid in [false, true] {
        let fixture = Fixture::with(|pod| pod.host_pid = host_pid).await;
        let nap = nap();
        let fork = script(&format!(
            "setsid sh -c 'setsid sleep {nap} & sleep {nap}' & sleep 0.2; exit 4"
        ));
        assert_eq!(fixture.run(&fork).await.code, 4);
        assert_eq!(processes(&nap), NONE, "host_pid: {host_pid}");
        fixture.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_sandbox_starts_nothing() {
    let fixture = Fixture::new().await;
    let id = fixture.create(&script("true")).await;
    fixture
        .runtime
        .stop_sandbox(&fixture.sandbox)
        .await
        .unwrap();
    assert!(fixture.runtime.start(&id).await.is_err());
    let found = fixture
        .runtime
        .inspect(&fixture.pod.pod.uid)
        .await
        .unwrap()
        .unwrap();
    assert!(!found.observed.sandbox.unwrap().ready);
    fixture.end().await;
}

/// A machine with a hundred containers has a hundred of these.
#[tokio::test(flavor = "multi_thread")]
async fn a_shim_is_small() {
    const MOST: u64 = 2 << 10;
    let fixture = Fixture::new().await;
    let app = ContainerConfig {
        stdin: true,
        ..script("yes | head -n 20000; head -c 100000 /dev/zero; echo done; sleep 1000")
    };
    let id = fixture.start(&app).await;
    until("it has written much", async || {
        fixture.log(&app).contains("done\n")
    })
    .await;
    let shim = std::fs::read_to_string(fixture.dir(&id).join("shim")).unwrap();
    let shim = shim.split(' ').next().unwrap();
    let status = std::fs::read_to_string(format!("/proc/{shim}/status")).unwrap();
    let resident = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    println!("a shim holds{resident}");
    let resident: u64 = resident.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(resident <= MOST, "{resident} kB");
    fixture.end().await;
}
