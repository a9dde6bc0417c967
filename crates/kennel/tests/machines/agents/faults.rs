//! Faults on machines: agents killed at any moment, unreachable servers, container runtimes that restart, full
//! disks. Daemons keep running.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use kennel_testkit::machine::Image;
use kennel_testkit::{Deadline, eventually};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::fleet::{Engine, Fleet, TIMEOUT, is_ready};

const APP: &str = "kennel.test/app:1";
/// How often the agent is killed.
const KILLS: u64 = 8;

#[test]
fn an_agent_that_is_killed_again_and_again_loses_and_doubles_no_container() {
    if kennel_testkit::machine::possible() {
        is_killed(Engine::Containerd);
    }
}

#[test]
fn an_agent_that_is_killed_again_and_again_loses_and_doubles_no_process() {
    if kennel_testkit::machine::possible() {
        is_killed(Engine::Process);
    }
}

/// Writes a line for each start, and sleeps under a name that is found among all processes.
fn sleeper(name: &str, shared: &Path) -> String {
    let file = shared.join(name);
    let (dir, file) = (shared.display(), file.display());
    format!(
        r#"
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  hostNetwork: true
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 1
  volumes: [{{name: s, hostPath: {{path: {dir}}}}}]
  containers:
  - name: c
    image: {APP}
    command: [sh, -c, "echo started >> {file}; exec tail -f {file}"]
    volumeMounts: [{{name: s, mountPath: {dir}}}]
"#
    )
}

fn is_killed(engine: Engine) {
    let mut fleet = Fleet::new(engine, 1, &[Image::new(APP)]);
    let shared = tempfile::tempdir().unwrap();
    let mut chance = fastrand::Rng::with_seed(kennel_testkit::fresh_seed());
    for round in 0..KILLS {
        let (new, old) = (format!("p{round}"), round.checked_sub(2));
        fleet.apply(&sleeper(&new, shared.path()));
        if let Some(old) = old.filter(|old| old % 2 == 0) {
            let old = format!("p{old}");
            fleet
                .kubectl
                .run(&["delete", "pod", &old, "--wait=false"])
                .ok();
        }
        std::thread::sleep(Duration::from_millis(chance.u64(0..600)));
        fleet.machines[0].agent.kill();
        fleet.machines[0].start_again();
    }
    let stay = |round: &u64| round % 2 == 1 || *round >= KILLS - 2;
    let staying: Vec<String> = (0..KILLS).filter(stay).map(|n| format!("p{n}")).collect();
    for name in &staying {
        let pod = fleet.pod(name, is_ready);
        let status = &pod["status"];
        assert_eq!(restarts(&pod), 0, "{name} was restarted: {status:#}");
    }
    let starts = |name: &String| {
        let starts = fs::read_to_string(shared.path().join(name)).unwrap();
        assert!(starts.starts_with("started\n"), "{name}: {starts}");
        starts.lines().count()
    };
    let starts: usize = staying.iter().map(starts).sum();
    let canceled = match engine {
        Engine::Containerd => canceled_starts(&fleet.machines[0].containerd().log()),
        Engine::Process => 0,
    };
    let expected = staying.len()..=staying.len() + canceled;
    assert!(
        expected.contains(&starts),
        "{starts} starts, {expected:?} expected"
    );
    eventually(Deadline::seconds(TIMEOUT), || {
        let pods = fleet.get(&["pods"])?;
        let there = pods["items"].as_array().map_or(0, Vec::len);
        (there == staying.len())
            .then_some(())
            .ok_or(pods.to_string())
    });
    let expected: BTreeMap<String, usize> = staying.into_iter().map(|name| (name, 1)).collect();
    assert_eq!(
        running(shared.path()),
        expected,
        "what runs is not what is to"
    );
}

/// How many starts containerd canceled because its client was killed. The process of such a container may already run:
/// containerd kills it.
fn canceled_starts(log: &str) -> usize {
    let canceled = |line: &&str| {
        line.contains("StartContainer for")
            && line.contains("failed to start containerd task")
            && line.contains("context canceled")
    };
    log.lines().filter(canceled).count()
}

fn restarts(pod: &Value) -> i64 {
    let count = &pod["status"]["containerStatuses"][0]["restartCount"];
    count.as_i64().unwrap_or_default()
}

/// The processes that look at files of a directory, each with its file.
fn watchers(shared: &Path) -> Vec<(i32, String)> {
    let mut all = Vec::new();
    for process in fs::read_dir("/proc").unwrap().flatten() {
        let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        let mut words = line.split('\0');
        let program = words.next().unwrap_or_default();
        if !program.ends_with("tail") {
            continue;
        }
        let name = process.file_name().into_string().unwrap();
        let files = words.filter_map(|word| Path::new(word).strip_prefix(shared).ok());
        all.extend(files.map(|file| (name.parse().unwrap(), file.display().to_string())));
    }
    all
}

/// How many processes look at each file of a directory.
fn running(shared: &Path) -> BTreeMap<String, usize> {
    let mut all = BTreeMap::new();
    for (_, file) in watchers(shared) {
        *all.entry(file).or_default() += 1;
    }
    all
}

/// Kills what looks at a file.
fn kill_watcher(shared: &Path, name: &str) {
    let found = watchers(shared).into_iter().find(|(_, file)| file == name);
    let pid = Pid::from_raw(found.unwrap().0).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
}

#[test]
fn a_server_that_is_away_is_not_missed() {
    if !kennel_testkit::machine::possible() {
        return;
    }
    let fleet = Fleet::new(Engine::Process, 1, &[]);
    let shared = tempfile::tempdir().unwrap();
    fleet.apply(&sleeper("steady", shared.path()));
    fleet.pod("steady", is_ready);
    let Fleet {
        machines,
        kubectl,
        server,
    } = fleet;
    let server = server.crash_and_come_back_after(|| {
        // A container that exits while no agent runs is restarted by the next one.
        kill_watcher(shared.path(), "steady");
        eventually(Deadline::seconds(TIMEOUT), || {
            let starts = fs::read_to_string(shared.path().join("steady")).unwrap();
            let again = starts.lines().count() == 2;
            again.then_some(()).ok_or_else(|| machines[0].agent.log())
        });
    });
    let fleet = Fleet {
        machines,
        kubectl,
        server,
    };
    let pod = fleet.pod("steady", |pod| is_ready(pod) && restarts(pod) == 1);
    assert_eq!(pod["status"]["phase"], "Running");
    fleet.apply(&sleeper("later", shared.path()));
    fleet.pod("later", is_ready);
}

#[test]
fn a_containerd_that_restarts_loses_nothing() {
    if !kennel_testkit::machine::possible() {
        return;
    }
    let fleet = Fleet::new(Engine::Containerd, 1, &[Image::new(APP)]);
    let shared = tempfile::tempdir().unwrap();
    fleet.apply(&sleeper("before", shared.path()));
    let before = fleet.pod("before", is_ready);
    fleet.machines[0].containerd().kill();
    eventually(Deadline::seconds(TIMEOUT), || {
        let node = fleet.get(&["node", "machine-1"])?;
        let ready = super::fleet::condition(&node, "Ready");
        ready
            .is_none()
            .then_some(())
            .ok_or("the node does not say that its engine is away".to_owned())
    });
    fleet.machines[0].containerd().start_again();
    fleet.apply(&sleeper("after", shared.path()));
    fleet.pod("after", is_ready);
    let again = fleet.pod("before", is_ready);
    assert_eq!(
        again["status"]["containerStatuses"],
        before["status"]["containerStatuses"]
    );
    assert_eq!(running(shared.path()).values().sum::<usize>(), 2);
}

#[test]
fn a_full_disk_is_said_and_survived() {
    if !kennel_testkit::machine::possible() {
        return;
    }
    let fleet = Fleet::new(Engine::Process, 1, &[]);
    let data = fleet.machines[0].agent.data_dir();
    let shared = tempfile::tempdir().unwrap();
    fleet.apply(&sleeper("before", shared.path()));
    fleet.pod("before", is_ready);
    let full = FullDisk::over(&data.join("pods"));
    let create = ["create", "configmap", "large", "--from-literal=x=y"];
    fleet.kubectl.run(&create).ok();
    fleet.apply(WITH_FILES);
    eventually(Deadline::seconds(TIMEOUT), || {
        let said = fleet.kubectl.run(&["describe", "pod", "with-files"]).stdout;
        said.to_lowercase()
            .contains("no space left")
            .then_some(())
            .ok_or(said)
    });
    drop(full);
    fleet.pod("with-files", is_ready);
    let before = fleet.pod("before", is_ready);
    assert_eq!(restarts(&before), 0);
}

const WITH_FILES: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: with-files}
spec:
  hostNetwork: true
  terminationGracePeriodSeconds: 0
  volumes: [{name: files, configMap: {name: large}}]
  containers:
  - {name: c, image: "kennel.test/app:1", command: [sleep, infinity], volumeMounts: [{name: files, mountPath: /files}]}
"#;

/// A file system without room, over a directory.
struct FullDisk(std::path::PathBuf);

impl FullDisk {
    fn over(dir: &Path) -> Self {
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=4k,nr_inodes=2", "full"])
            .arg(dir)
            .status();
        assert!(mounted.unwrap().success());
        fs::write(dir.join("filler"), [0; 4096]).unwrap();
        Self(dir.to_owned())
    }
}

impl Drop for FullDisk {
    fn drop(&mut self) {
        let _gone = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}
