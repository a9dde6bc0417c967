//! Agents and shims are killed; containers are neither lost nor duplicated.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use kennel_core::pod::State;
use kennel_node::runtime::{Runtime as _, SandboxConfig};
use rustix::process::{Pid, Signal, kill_process};

use crate::process_runtime::fixture::{Fixture, NONE, nap, open, processes, script, until};

/// The number of the process that a file of a container names.
fn pid(dir: &Path, file: &str, word: usize) -> i32 {
    let text = std::fs::read_to_string(dir.join(file)).unwrap();
    text.split(' ').nth(word).unwrap().parse().unwrap()
}

fn kill(pid: i32) {
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_agent_finds_what_runs_and_hears_of_its_end() {
    let first = Fixture::new().await;
    let app = script(
        "echo one; while [ ! -e /tmp/kennel-test-go ]; do sleep 0.05; done; echo two; exit 5",
    );
    let id = first.start(&app).await;
    until("it runs", async || first.log(&app).contains("one")).await;
    let before = first.state(&id).await.unwrap();
    let second = first.reopened().await;
    let after = second.state(&id).await.unwrap();
    assert_eq!(before, after, "nothing has happened to it");
    second
        .runtime
        .exec(
            &id,
            &["touch".to_owned(), "/tmp/kennel-test-go".to_owned()],
            Duration::from_secs(9),
        )
        .await
        .unwrap();
    assert_eq!(second.exit(&id).await.code, 5);
    assert_eq!(second.log(&app), "stdout F one\nstdout F two\n");
    assert!(
        !Path::new("/tmp/kennel-test-go").exists(),
        "written in its own layer"
    );
    second.end().await;
}

/// Run as a process of its own by the test below: an agent that starts a container and then only waits.
#[tokio::test(flavor = "multi_thread")]
async fn helper_agent_that_is_killed() {
    let Ok(data) = std::env::var("KENNEL_TEST_AGENT_DATA") else {
        return;
    };
    let nap = std::env::var("KENNEL_TEST_AGENT_NAP").unwrap();
    let runtime = open(Path::new(&data));
    let pod = helper_pod(Path::new(&data));
    let sandbox = runtime.start_sandbox(&pod).await.unwrap();
    let mut config = script(&format!("echo up; sleep {nap}"));
    config.name = "app".to_owned();
    config.log_path = "app/0.log".into();
    let id = runtime.create(&pod, &sandbox, &config).await.unwrap();
    runtime.start(&id).await.unwrap();
    std::future::pending::<()>().await;
}

fn helper_pod(data: &Path) -> SandboxConfig {
    SandboxConfig {
        host_network: true,
        log_dir: data.join("logs"),
        ..SandboxConfig::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_agent_takes_no_container_with_it() {
    let fixture = Fixture::new().await;
    let (data, nap) = (tempfile::tempdir().unwrap(), nap());
    let mut agent = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "process_runtime::faults::helper_agent_that_is_killed",
            "--nocapture",
        ])
        .env("KENNEL_TEST_AGENT_DATA", data.path())
        .env("KENNEL_TEST_AGENT_NAP", &nap)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    until("its container runs", async || {
        processes(&format!("sleep {nap}")).len() == 2
    })
    .await;
    agent.kill().unwrap();
    agent.wait().unwrap();
    let runtime = open(data.path());
    let found = runtime.list().await.unwrap();
    let run = &found[0].observed.runs[0];
    assert!(matches!(run.state, State::Running { .. }), "{run:?}");
    assert_eq!(processes(&format!("sleep {nap}")).len(), 2);
    runtime.start(&run.id).await.unwrap();
    assert_eq!(
        processes(&format!("sleep {nap}")).len(),
        2,
        "not started twice"
    );
    let sandbox = found[0].observed.sandbox.as_ref().unwrap();
    runtime.remove_sandbox(&sandbox.id).await.unwrap();
    assert_eq!(processes(&nap), NONE);
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_shim_takes_its_container_with_it() {
    for host_pid in [false, true] {
        let fixture = Fixture::with(|pod| pod.host_pid = host_pid).await;
        let nap = nap();
        let id = fixture
            .start(&script(&format!("setsid sleep {nap} & sleep {nap}")))
            .await;
        until("it runs", async || {
            processes(&format!("sleep {nap}")).len() == 3
        })
        .await;
        kill(pid(&fixture.dir(&id), "shim", 0));
        let exit = fixture.exit(&id).await;
        assert_eq!(
            (exit.code, exit.reason.as_str()),
            (137, "Unknown"),
            "{}",
            exit.message
        );
        assert_eq!(processes(&nap), NONE, "nothing of it is left");
        assert!(
            fixture.runtime.start(&id).await.is_err(),
            "what has ended does not start again"
        );
        fixture.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shim_that_was_killed_while_no_agent_ran_is_found_out() {
    let first = Fixture::new().await;
    let nap = nap();
    let id = first.start(&script(&format!("sleep {nap}"))).await;
    let dir = first.dir(&id);
    // The running process has another start time than this record: the pid was reused.
    let shim = pid(&dir, "shim", 0);
    std::fs::write(dir.join("shim"), format!("{shim} 1 other-boot")).unwrap();
    kill(shim);
    until("its shim is gone", async || {
        processes("kennel-shim").iter().all(|its| *its != shim)
    })
    .await;
    let second = first.reopened().await;
    let exit = second.exit(&id).await;
    assert_eq!(exit.reason, "Unknown");
    assert_eq!(processes(&nap), NONE, "it was ended");
    second.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_that_was_given_away_is_not_ours() {
    let fixture = Fixture::new().await;
    let bystander = nap();
    let mut stranger = Command::new("sleep").arg(&bystander).spawn().unwrap();
    let id = fixture.start(&script(&format!("sleep {}", nap()))).await;
    let dir = fixture.dir(&id);
    // As if the container had died with its shim, and its number were the stranger's now.
    let shim = pid(&dir, "shim", 0);
    let container = pid(&dir, "start", 1);
    std::fs::write(dir.join("start"), format!("5 {} 77 boot", stranger.id())).unwrap();
    kill(container);
    let _ended_already = kill_process(Pid::from_raw(shim).unwrap(), Signal::KILL);
    fixture.exit(&id).await;
    assert_eq!(stranger.try_wait().unwrap(), None, "the stranger lives");
    fixture.runtime.stop(&id, Duration::ZERO).await.unwrap();
    assert_eq!(stranger.try_wait().unwrap(), None);
    stranger.kill().unwrap();
    stranger.wait().unwrap();
    fixture.end().await;
}
