//! kubectl, an old one (SPDY) and a new one (WebSocket): logs, exec, attach,
//! port-forward, cp, describe.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;

use kennel_testkit::machine::Image;
use kennel_testkit::{Answer, Deadline, Kubectl, Version, eventually, fetch, fetch_within};
use serde_json::Value;

use super::fleet::{Engine, Fleet, TIMEOUT, is_ready};

#[test]
fn looking_into_containers() {
    if kennel_testkit::machine::possible() {
        look(Engine::Containerd);
    }
}

#[test]
fn looking_into_processes() {
    if kennel_testkit::machine::possible() {
        look(Engine::Process);
    }
}

fn look(engine: Engine) {
    let fleet = Fleet::new(engine, 1, &[Image::new("kennel.test/app:1")]);
    // The busybox of the machine where there are no images, the image's where there are.
    fleet.apply(PODS);
    for name in ["talker", "web", "crashed"] {
        fleet.pod(name, |pod| is_ready(pod) || name == "crashed");
    }
    for version in Version::ALL {
        let kubectl = Kubectl::new(version, &fleet.server.kubeconfig());
        reads_logs(&kubectl, &fleet);
        runs_commands(&kubectl);
        runs_commands_in_a_terminal(&kubectl);
        attaches(&kubectl, &fleet);
        copies(&kubectl);
        forwards_ports(&kubectl);
        describes(&kubectl, &fleet);
    }
    are_audited(&fleet);
}

const PODS: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: talker, labels: {app: talker}}
spec:
  hostNetwork: true
  terminationGracePeriodSeconds: 0
  containers:
  - {name: a, image: "kennel.test/app:1", command: [sh, -c, "for i in 1 2 3 4 5; do echo line $i; done; echo wrong >&2; sleep infinity"]}
  - {name: b, image: "kennel.test/app:1", command: [sh, -c, "echo from b; sleep infinity"]}
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  hostNetwork: true
  terminationGracePeriodSeconds: 0
  containers:
  - name: web
    image: kennel.test/app:1
    command: [sh, -c, "mkdir -p /tmp/www; echo here I am > /tmp/www/index.html; exec busybox httpd -f -p 8088 -h /tmp/www"]
    readinessProbe: {tcpSocket: {port: 8088}, periodSeconds: 1}
---
apiVersion: v1
kind: Pod
metadata: {name: crashed}
spec:
  hostNetwork: true
  terminationGracePeriodSeconds: 0
  containers:
  - {name: c, image: "kennel.test/app:1", command: [sh, -c, "echo once more; exit 1"]}
"#;

const ONCE: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: once}
spec:
  hostNetwork: true
  restartPolicy: Never
  containers:
  - {name: c, image: "kennel.test/app:1", command: [sh, -c, "for i in 1 2 3 4 5; do echo step $i; sleep 0.2; done"]}
"#;

const LISTENER: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: listener}
spec:
  hostNetwork: true
  restartPolicy: Never
  containers:
  - {name: c, image: "kennel.test/app:1", stdin: true, stdinOnce: true, command: [sh, -c, "while read line; do echo heard $line; done; echo end"]}
"#;

fn reads_logs(kubectl: &Kubectl, fleet: &Fleet) {
    let logs = |arguments: &[&str]| {
        let mut all = vec!["logs"];
        all.extend(arguments);
        kubectl.run(&all).ok()
    };
    let all = eventually(Deadline::seconds(TIMEOUT), || {
        let all = logs(&["talker", "-c", "a"]);
        (all.lines().count() == 6).then_some(all.clone()).ok_or(all)
    });
    // Two pipes: nothing orders a line on stderr among those on stdout.
    let (stderr, stdout): (Vec<&str>, Vec<&str>) = all.lines().partition(|line| *line == "wrong");
    assert_eq!(
        stdout,
        ["line 1", "line 2", "line 3", "line 4", "line 5"],
        "{all}"
    );
    assert_eq!(stderr, ["wrong"], "{all}");
    assert_eq!(logs(&["talker", "-c", "b"]), "from b\n");
    assert_eq!(logs(&["talker", "-c", "a", "--tail=0"]), "");
    assert_eq!(logs(&["talker", "-c", "a", "--since=1h"]), all);
    assert_eq!(logs(&["talker", "-c", "a", "--tail=2"]).lines().count(), 2);
    assert_eq!(logs(&["talker", "-c", "a", "--limit-bytes=6"]), all[..6]);
    let stamped = logs(&["talker", "-c", "b", "--timestamps"]);
    let (time, text) = stamped.split_once(' ').unwrap();
    assert!(time.ends_with('Z') && time.starts_with("20"), "{time}");
    assert_eq!(text, "from b\n");
    let both = logs(&["talker", "--all-containers"]);
    assert!(both.contains("line 5") && both.contains("from b"), "{both}");
    let chosen = logs(&["-l", "app=talker", "-c", "b"]);
    assert_eq!(chosen, "from b\n");
    let unknown = kubectl.run(&["logs", "talker", "-c", "nobody"]);
    assert_eq!(unknown.code, 1);
    let words = "container nobody is not valid for pod talker";
    assert!(unknown.stderr.contains(words), "{}", unknown.stderr);
    fleet.apply(ONCE);
    let started = |pod: &serde_json::Value| pod["status"]["phase"] != "Pending";
    fleet.pod("once", started);
    let followed = logs(&["once", "-f"]);
    assert_eq!(followed, "step 1\nstep 2\nstep 3\nstep 4\nstep 5\n");
    kubectl.run(&["delete", "pod", "once"]).ok();
    fleet.pod("crashed", |pod| {
        pod["status"]["containerStatuses"][0]["restartCount"].as_i64() >= Some(1)
    });
    assert_eq!(logs(&["crashed", "--previous"]), "once more\n");
}

fn runs_commands(kubectl: &Kubectl) {
    let exec = |input: &str, arguments: &[&str]| -> Answer {
        let mut all = vec!["exec"];
        all.extend(arguments);
        kubectl.run_with_input(&all, input)
    };
    let both = "echo out; echo wrong >&2; exit 5";
    let answer = exec("", &["talker", "-c", "a", "--", "sh", "-c", both]);
    assert_eq!(answer.stdout, "out\n", "{answer:?}");
    assert!(answer.stderr.contains("wrong\n"), "{answer:?}");
    assert_eq!(answer.code, 5, "{answer:?}");
    let long = "all that is said\n".repeat(20_000);
    let answer = exec(&long, &["-i", "talker", "-c", "a", "--", "cat"]);
    assert_eq!(answer.stdout.len(), long.len(), "{}", answer.stderr);
    assert_eq!(answer.stdout, long);
    let answer = exec("", &["talker", "-c", "a", "--", "/no/such/thing"]);
    assert_ne!(answer.code, 0);
    assert!(answer.stderr.contains("no such file"), "{answer:?}");
}

/// `script` gives kubectl the terminal that it asks for.
fn runs_commands_in_a_terminal(kubectl: &Kubectl) {
    let command = kubectl.command();
    let words: Vec<&str> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_str().unwrap())
        .collect();
    let kubectl = words.join(" ");
    let line = format!(
        "stty rows 33 cols 99; {kubectl} exec -it talker -c a -- sh -c 'sleep 0.5; stty size; test -t 0 && exit 9'"
    );
    let output = std::process::Command::new("script")
        .args(["--quiet", "--return", "--command", &line, "/dev/null"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("33 99"), "{said}");
    assert_eq!(output.status.code(), Some(9), "{said}");
}

fn attaches(kubectl: &Kubectl, fleet: &Fleet) {
    fleet.apply(LISTENER);
    fleet.pod("listener", is_ready);
    let answer = kubectl.run_with_input(&["attach", "-i", "listener"], "one\ntwo\n");
    let heard = "heard one\nheard two\nend\n";
    assert!(answer.stdout.contains(heard), "{answer:?}");
    fleet.pod("listener", |pod| pod["status"]["phase"] == "Succeeded");
    kubectl.run(&["delete", "pod", "listener"]).ok();
}

fn copies(kubectl: &Kubectl) {
    let directory = tempfile::tempdir().unwrap();
    let (there, back) = (
        directory.path().join("there"),
        directory.path().join("back"),
    );
    let content = "a little more than nothing\n".repeat(10_000);
    fs::write(&there, &content).unwrap();
    let copy = |from: &str, to: &str| {
        kubectl.run(&["cp", from, to, "-c", "a"]).ok();
    };
    copy(there.to_str().unwrap(), "talker:/tmp/copied");
    copy("talker:/tmp/copied", back.to_str().unwrap());
    assert_eq!(fs::read_to_string(&back).unwrap(), content);
}

/// A child that is ended when it is dropped.
struct KillOnDrop(Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let _gone_already = self.0.kill();
        let _reaped = self.0.wait();
    }
}

fn forwards_ports(kubectl: &Kubectl) {
    let child = kubectl
        .command()
        .args(["port-forward", "pod/web", ":8088"])
        .stdout(Stdio::piped())
        .spawn();
    let mut child = KillOnDrop(child.unwrap());
    let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
    let line = lines.next().unwrap().unwrap();
    let address = line.split_whitespace().nth(2).unwrap();
    let address = address.parse().unwrap();
    // More than one connection through one forward, one after the other and at once.
    for _ in 0..3 {
        let answer = eventually(Deadline::seconds(TIMEOUT), || fetch(address, "/"));
        assert!(answer.ends_with("here I am\n"), "{answer}");
    }
    std::thread::scope(|scope| {
        let within = Duration::from_secs(TIMEOUT);
        let ask = |_| scope.spawn(move || fetch_within(address, "/", within).unwrap());
        for asked in (0..8).map(ask).collect::<Vec<_>>() {
            assert!(asked.join().unwrap().ends_with("here I am\n"));
        }
    });
}

/// Each kubectl's sessions are in the audit log.
fn are_audited(fleet: &Fleet) {
    let file = fleet.server.data_dir().join("audit/audit.log");
    for (subresource, pod) in [
        ("exec", "talker"),
        ("attach", "listener"),
        ("portforward", "web"),
    ] {
        let is_session = |line: &Value| {
            let about = &line["objectRef"];
            line["responseStatus"]["code"] == 101
                && line["user"]["username"] == "kennel-admin"
                && (&about["resource"], &about["namespace"]) == (&"pods".into(), &"default".into())
                && (&about["subresource"], &about["name"]) == (&subresource.into(), &pod.into())
        };
        eventually(Deadline::seconds(TIMEOUT), || {
            let text = fs::read_to_string(&file).unwrap();
            let lines = text
                .lines()
                .filter_map(|line| serde_json::from_str(line).ok());
            let sessions = lines.filter(is_session).count();
            let whole = sessions >= Version::ALL.len();
            whole
                .then_some(())
                .ok_or(format!("{sessions} {subresource} in {text}"))
        });
    }
}

fn describes(kubectl: &Kubectl, fleet: &Fleet) {
    let node = fleet.machines[0].node();
    let said = kubectl.run(&["describe", "node", node]).ok();
    for words in [
        "Kubelet Version:",
        "Container Runtime Version:",
        "KubeletReady",
        "default/talker",
        "MemoryPressure",
        "Starting kubelet.",
        "NodeHasSufficientMemory",
        "Node machine-1 status is now: NodeReady",
    ] {
        let flat: String = said.split_whitespace().collect::<Vec<_>>().join(" ");
        let words = words.replace('/', " ");
        assert!(flat.contains(&words), "no {words:?} in {said}");
    }
    let said = kubectl.run(&["describe", "pod", "talker"]).ok();
    assert!(said.contains("Container started"), "{said}");
    // The same words about each of its containers.
    let started = [
        "--field-selector",
        "reason=Started,involvedObject.name=talker",
    ];
    let mut get = vec!["get", "events", "-o", "wide"];
    get.extend(started);
    let said = kubectl.run(&get).ok();
    for part in ["spec.containers{a}", "spec.containers{b}"] {
        assert!(said.contains(part), "{said}");
    }
}
