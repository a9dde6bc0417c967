//! `kubectl debug`: ephemeral containers in running pods, copies of pods, and nodes.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::Stdio;

use kennel_testkit::machine::Image;
use kennel_testkit::{Answer, Deadline, Kubectl, Version, eventually};
use serde_json::{Value, json};

use super::fleet::{Engine, Fleet, TIMEOUT, has_event, is_ready};

const APP: &str = "kennel.test/app:1";

const PODS: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: app}
spec:
  hostNetwork: true
  terminationGracePeriodSeconds: 0
  containers:
  - {name: c, image: "kennel.test/app:1", command: [sleep, "424242"]}
---
apiVersion: v1
kind: Pod
metadata: {name: done}
spec:
  hostNetwork: true
  restartPolicy: Never
  containers:
  - {name: c, image: "kennel.test/app:1", command: ["true"]}
"#;

#[test]
fn debugging_containers() {
    if kennel_testkit::machine::possible() {
        debug(Engine::Containerd);
    }
}

#[test]
fn debugging_processes() {
    if kennel_testkit::machine::possible() {
        debug(Engine::Process);
    }
}

fn debug(engine: Engine) {
    let mut fleet = Fleet::new(engine, 1, &[Image::new(APP)]);
    fleet.apply(PODS);
    fleet.pod("app", is_ready);
    looks_into_the_target(&fleet);
    has_privileges(&fleet);
    talks_to_a_shell(&fleet);
    talks_in_a_terminal(&fleet);
    survives_the_agent(&mut fleet);
    refuses(&fleet);
    copies(&fleet, engine);
    for version in Version::ALL {
        debugs_the_node(&Kubectl::new(version, &fleet.server.kubeconfig()), &fleet);
    }
    fleet.kubectl.run(&["delete", "pod", "app"]).ok();
}

/// `kubectl debug app …`, in a container of this name.
fn run(fleet: &Fleet, name: &str, more: &[&str], input: &str) -> Answer {
    let mut all = vec![
        "debug",
        "app",
        "-c",
        name,
        "--image",
        APP,
        "--profile=general",
    ];
    all.extend(more);
    fleet.kubectl.run_with_input(&all, input)
}

/// The status of an ephemeral container.
fn status(pod: &Value, name: &str) -> Value {
    let all = pod["status"]["ephemeralContainerStatuses"].as_array();
    let mut all = all.into_iter().flatten();
    let found = all.find(|status| status["name"] == name);
    found.cloned().unwrap_or_default()
}

fn is_running(pod: &Value, name: &str) -> bool {
    status(pod, name)["state"]["running"].is_object()
}

fn logs(fleet: &Fleet, pod: &str, container: &str, words: &str) {
    eventually(Deadline::seconds(TIMEOUT), || {
        let answer = fleet.kubectl.run(&["logs", pod, "-c", container]);
        let found = answer.stdout.contains(words);
        found
            .then_some(())
            .ok_or(format!("no {words:?} in {answer:?}"))
    });
}

/// It shares the processes of its target: the first one there is the target's.
const FIRST: &str = "tr '\\0' ' ' < /proc/1/cmdline; echo";

fn looks_into_the_target(fleet: &Fleet) {
    let command = format!("{FIRST}; sleep 5000");
    run(
        fleet,
        "look",
        &["--target=c", "--", "sh", "-c", &command],
        "",
    )
    .ok();
    let pod = fleet.pod("app", |pod| is_running(pod, "look"));
    assert!(is_ready(&pod), "{pod:#}");
    assert_eq!(pod["status"]["phase"], "Running");
    assert_eq!(status(&pod, "look")["ready"], json!(false));
    logs(fleet, "app", "look", "sleep 424242");
    let exec = ["exec", "app", "-c", "look", "--", "sh", "-c", FIRST];
    assert_eq!(fleet.kubectl.run(&exec).ok(), "sleep 424242 \n");
    // Without a target, it has processes of its own.
    run(fleet, "alone", &["--", "sh", "-c", FIRST], "").ok();
    logs(fleet, "app", "alone", "tr ");
    let said = fleet.kubectl.run(&["describe", "pod", "app"]).ok();
    assert!(said.contains("Ephemeral Containers:"), "{said}");
    has_event(fleet, "app", "spec.ephemeralContainers{look}");
}

/// `--profile=sysadmin` is privileged, whatever the pod is.
fn has_privileges(fleet: &Fleet) {
    let mount = "mkdir -p /tmp/m && mount -t tmpfs m /tmp/m && echo mighty";
    let debug = [
        "debug",
        "app",
        "-c",
        "admin",
        "--image",
        APP,
        "--profile=sysadmin",
    ];
    let debug = [&debug[..], &["--", "sh", "-c", mount]].concat();
    fleet.kubectl.run(&debug).ok();
    logs(fleet, "app", "admin", "mighty");
}

fn talks_to_a_shell(fleet: &Fleet) {
    let mut debug = fleet.kubectl.command();
    debug.args(["debug", "app", "-i", "-c", "shell", "--image", APP]);
    debug.args(["--profile=general", "--target=c", "--", "sh"]);
    let child = debug.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = child.unwrap();
    // Held open: containerd detaches a client whose input ends.
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"echo heard\n").unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut said = String::new();
    // The runtime may drop what a process writes just before it exits, so the answer is read first.
    while !said.contains("heard") {
        let length = output.read_line(&mut said).unwrap();
        assert!(length > 0, "the shell has not answered: {said}");
    }
    input.write_all(b"exit 3\n").unwrap();
    output.read_to_string(&mut said).unwrap();
    drop(input);
    child.wait().unwrap();
    let pod = fleet.pod("app", |pod| {
        status(pod, "shell")["state"]["terminated"].is_object()
    });
    let ended = &status(&pod, "shell")["state"]["terminated"];
    assert_eq!(ended["exitCode"], 3, "{pod:#}");
}

/// `script` gives kubectl the terminal that it asks for. The size comes with the client that attaches.
fn talks_in_a_terminal(fleet: &Fleet) {
    let command = fleet.kubectl.command();
    let words: Vec<&str> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_str().unwrap())
        .collect();
    let kubectl = words.join(" ");
    let wait = "n=0; until [ \"$(stty size)\" = \"33 99\" ] || [ $n = 600 ]; do sleep 0.1; n=$((n+1)); done; \
                echo size $(stty size)";
    let line = format!(
        "stty rows 33 cols 99; {kubectl} debug app -it -c term --image {APP} --profile=general -- sh -c '{wait}'"
    );
    let output = std::process::Command::new("script")
        .args(["--quiet", "--return", "--command", &line, "/dev/null"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("size 33 99"), "{said}");
}

/// Another agent finds what runs, and starts nothing again.
fn survives_the_agent(fleet: &mut Fleet) {
    let has_ended = |pod: &Value, name: &str| status(pod, name)["state"]["terminated"].is_object();
    let before = fleet.pod("app", |pod| {
        let ended = ["alone", "shell", "term"];
        is_running(pod, "look") && ended.iter().all(|name| has_ended(pod, name))
    });
    fleet.machines[0].agent.kill();
    fleet.machines[0].start_again();
    run(
        fleet,
        "after",
        &["--", "sh", "-c", "echo again; sleep 5000"],
        "",
    )
    .ok();
    let after = fleet.pod("app", |pod| is_running(pod, "after"));
    for name in ["look", "alone", "shell", "term"] {
        let (before, after) = (status(&before, name), status(&after, name));
        assert_eq!(before["containerID"], after["containerID"], "{name}");
        assert_eq!(before["state"], after["state"], "{name}");
    }
    logs(fleet, "app", "after", "again");
}

fn refuses(fleet: &Fleet) {
    for (name, more, words) in [
        (
            "x",
            vec!["--target=nobody"],
            "targetContainerName: Not found: \"nobody\"",
        ),
        ("c", vec![], "name: Duplicate value: \"c\""),
    ] {
        let mut more = more;
        more.extend(["--", "true"]);
        let answer = run(fleet, name, &more, "");
        assert_eq!(answer.code, 1, "{answer:?}");
        assert!(answer.stderr.contains(words), "{answer:?}");
    }
    // It sends a kind that Kubernetes has dropped.
    let old = Kubectl::new(Version::V1_20, &fleet.server.kubeconfig());
    let answer = old.run(&["debug", "app", "-c", "old", "--image", APP, "--", "true"]);
    assert_eq!(answer.code, 1, "{answer:?}");
    assert!(answer.stderr.contains("EphemeralContainers"), "{answer:?}");
    fleet.pod("done", |pod| pod["status"]["phase"] == "Succeeded");
    let late = [
        "debug",
        "done",
        "-c",
        "x",
        "--image",
        APP,
        "--profile=general",
        "--",
        "true",
    ];
    let answer = fleet.kubectl.run(&late);
    let words = "pod \"done\" has finished (Succeeded): its ephemeral containers will not start";
    assert!(answer.stderr.contains(words), "{answer:?}");
}

fn copies(fleet: &Fleet, engine: Engine) {
    let copy = |to: &str, more: &[&str]| {
        let to = format!("--copy-to={to}");
        let mut all = vec![
            "debug",
            "app",
            "-c",
            "look",
            "--image",
            APP,
            "--profile=general",
            &to,
        ];
        all.extend(more);
        all.extend([
            "--",
            "sh",
            "-c",
            "while sleep 0.2; do cat /proc/[0-9]*/cmdline | tr '\\0' ' '; echo; done",
        ]);
        fleet.kubectl.run(&all).ok();
    };
    copy("shared", &[]);
    match engine {
        Engine::Containerd => {
            fleet.pod("shared", is_ready);
            logs(fleet, "shared", "look", "sleep 424242");
        }
        Engine::Process => has_event(
            fleet,
            "shared",
            "kubectl debug --copy-to: --share-processes=false",
        ),
    }
    copy("apart", &["--share-processes=false"]);
    fleet.pod("apart", is_ready);
    logs(fleet, "apart", "look", "sh -c");
    fleet
        .kubectl
        .run(&["delete", "pod", "shared", "apart", "--grace-period=1"])
        .ok();
}

/// All of the machine is below `/host`, and its processes are seen.
fn debugs_the_node(kubectl: &Kubectl, fleet: &Fleet) {
    let shared = tempfile::tempdir().unwrap();
    let file = shared.path().join("note");
    fs::write(&file, "from the machine").unwrap();
    let node = format!("node/{}", fleet.machines[0].node());
    let agent = fleet.machines[0].agent.pid();
    let command = format!(
        "cat /host{}; test -d /proc/{agent} && echo its processes, too",
        file.display()
    );
    let debug = ["debug", &node, "--image", APP, "--", "sh", "-c", &command];
    let answer = kubectl.run(&debug);
    assert_eq!(answer.code, 0, "{answer:?}");
    let said = format!("{}{}", answer.stdout, answer.stderr);
    let mut words = said.split_whitespace();
    let name = words
        .find(|word| word.starts_with("node-debugger-"))
        .unwrap();
    fleet.pod(name, |pod| pod["status"]["phase"] == "Succeeded");
    logs(
        fleet,
        name,
        "debugger",
        "from the machineits processes, too",
    );
    kubectl.run(&["delete", "pod", name]).ok();
}
