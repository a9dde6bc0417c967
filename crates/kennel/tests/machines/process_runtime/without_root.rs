//! An agent without root: what it cannot do is refused. It finds containers by a marker in
//! their environment, since there are no cgroups.

use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use kennel_core::pod::State;
use kennel_node::runtime::process::{Options, Process};
use kennel_node::runtime::{ContainerConfig, Error, PodId, Runtime, SandboxConfig, Security};

use crate::process_runtime::fixture::{nap, processes, script, until, volume};

const NOBODY: u32 = 65534;

#[test]
fn without_root_less_is_possible() {
    let place = tempfile::tempdir().unwrap();
    std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let data = place.path().join("data");
    std::fs::create_dir(&data).unwrap();
    chown(&data, Some(NOBODY), Some(NOBODY)).unwrap();
    let kennel = reachable(Path::new(env!("CARGO_BIN_EXE_kennel")), place.path());
    let tests = reachable(&std::env::current_exe().unwrap(), place.path());
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(tests)
        .args([
            "--exact",
            "process_runtime::without_root::helper_that_is_nobody",
            "--nocapture",
        ])
        .env("KENNEL_TEST_NOBODY_DATA", data)
        .env("KENNEL_TEST_NOBODY_KENNEL", kennel)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("nobody has seen it all"), "{said}");
}

/// Build directories may be closed to others.
fn reachable(file: &Path, place: &Path) -> PathBuf {
    let link = place.join(file.file_name().unwrap());
    if std::fs::hard_link(file, &link).is_err() {
        std::fs::copy(file, &link).unwrap();
    }
    link
}

/// Run by the test above as an unprivileged user.
#[tokio::test(flavor = "multi_thread")]
async fn helper_that_is_nobody() {
    let Some(data) = std::env::var_os("KENNEL_TEST_NOBODY_DATA").map(PathBuf::from) else {
        return;
    };
    let shim = std::env::var_os("KENNEL_TEST_NOBODY_KENNEL")
        .unwrap()
        .into();
    let runtime = Process::open(Options {
        data: data.clone(),
        shim,
        pod_pids_limit: 0,
    })
    .unwrap();
    let pod = SandboxConfig {
        pod: PodId {
            namespace: "default".to_owned(),
            name: "pod".to_owned(),
            uid: "uid".to_owned(),
        },
        host_network: true,
        host_pid: true,
        log_dir: data.join("logs"),
        ..SandboxConfig::default()
    };
    refusals(&runtime, &pod).await;
    let sandbox = runtime.start_sandbox(&pod).await.unwrap();
    let run = async |config: &ContainerConfig| {
        let id = runtime.create(&pod, &sandbox, config).await.unwrap();
        runtime.start(&id).await.unwrap();
        id
    };
    let code = async |id: &str| loop {
        let found = runtime.inspect("uid").await.unwrap().unwrap().observed;
        let run = found.runs.into_iter().find(|run| run.id == id).unwrap();
        if let State::Exited(exit) = run.state {
            return exit.code;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    let (nap, other) = (nap(), nap());
    let escapes =
        format!("setsid sh -c 'setsid sleep {nap} & sleep {nap}' & sleep 0.2; id -u; exit 4");
    let app = ContainerConfig {
        mounts: vec![volume(&data, data.to_str().unwrap(), false)],
        ..script(&escapes)
    };
    let id = run(&app).await;
    assert_eq!(code(&id).await, 4);
    assert!(processes(&format!("sleep {nap}")).is_empty());
    let log = std::fs::read_to_string(pod.log_dir.join(&app.log_path)).unwrap();
    assert!(log.ends_with("stdout F 65534\n"), "{log}");

    let id = run(&script(&format!("setsid sleep {other} & sleep {other}"))).await;
    until("it sleeps", async || {
        processes(&format!("sleep {other}")).len() == 3
    })
    .await;
    let command = ["sh", "-c", "exit 7"].map(str::to_owned);
    let output = runtime
        .exec(&id, &command, Duration::from_secs(20))
        .await
        .unwrap();
    assert_eq!(output.code, 7, "{}", String::from_utf8_lossy(&output.text));
    // Its shim is killed: what it started is found by its mark.
    kill_shim(&data.join("process/pods").join(&sandbox).join(&id));
    assert_eq!(code(&id).await, 137);
    assert!(processes(&format!("sleep {other}")).is_empty());
    runtime.remove_sandbox(&sandbox).await.unwrap();
    println!("nobody has seen it all");
}

async fn refusals(runtime: &Process, pod: &SandboxConfig) {
    let hidden = SandboxConfig {
        host_pid: false,
        attempt: 9,
        ..pod.clone()
    };
    let refused = runtime.start_sandbox(&hidden).await;
    assert!(
        matches!(&refused, Err(Error::Refused(why)) if why.contains("hostPID: true")),
        "{refused:?}"
    );
    let user = ContainerConfig {
        security: Security {
            user: Some(1),
            ..Security::default()
        },
        ..script("true")
    };
    let refused = runtime.create(pod, "any", &user).await;
    assert!(
        matches!(&refused, Err(Error::Refused(why)) if why.contains("runAsUser")),
        "{refused:?}"
    );
}

fn kill_shim(container: &Path) {
    let shim = std::fs::read_to_string(container.join("shim")).unwrap();
    let shim = shim.split(' ').next().unwrap().parse().unwrap();
    let shim = rustix::process::Pid::from_raw(shim).unwrap();
    rustix::process::kill_process(shim, rustix::process::Signal::KILL).unwrap();
}
