//! The reference matches the program: pages are generated anew and compared, and what a live cluster shows is
//! looked up in them. Man pages and completions are made and tried.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use kennel_testkit::{Access, Agent, AgentPlan, Deadline, Kennel, eventually};
use serde_json::{Value, json};
use tempfile::TempDir;

const BINARY: &str = env!("CARGO_BIN_EXE_kennel");
const UPDATE: &str = "cargo run -p kennel -- generate reference --out docs/reference";
const DAEMON_SETS: &str = "/apis/apps/v1/namespaces/default/daemonsets";

fn generated(what: &str) -> TempDir {
    let dir = TempDir::new().unwrap();
    let made = Command::new(BINARY)
        .args(["generate", what, "--out"])
        .arg(dir.path())
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    dir
}

fn names(dir: &Path) -> BTreeSet<String> {
    let files = fs::read_dir(dir).unwrap();
    files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect()
}

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference")
}

#[test]
fn the_reference_is_what_the_program_says() {
    let dir = generated("reference");
    assert_eq!(names(dir.path()).len(), 4);
    for name in names(dir.path()) {
        let says = fs::read_to_string(dir.path().join(&name)).unwrap();
        let kept = fs::read_to_string(docs().join(&name)).unwrap_or_default();
        let differs = says.lines().zip(kept.lines()).find(|(a, b)| a != b);
        assert!(
            says == kept,
            "docs/reference/{name} is not what the program says; update it with\n  {UPDATE}\nfirst: {differs:?}"
        );
    }
}

#[test]
fn every_verb_has_a_man_page() {
    let dir = generated("man");
    let help = Command::new(BINARY).arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let verbs = help.split("Commands:").nth(1).unwrap().lines();
    let verbs = verbs.skip(1).take_while(|line| !line.is_empty());
    let verbs: Vec<&str> = verbs
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(verbs.contains(&"up"), "{help}");
    for verb in verbs.into_iter().filter(|verb| *verb != "help") {
        let page = fs::read_to_string(dir.path().join(format!("kennel-{verb}.1")));
        let page = page.unwrap_or_else(|error| panic!("no page for {verb}: {error}"));
        assert!(page.contains(".TH kennel-"), "{page}");
    }
    let page = fs::read_to_string(dir.path().join("kennel-server.1")).unwrap();
    assert!(page.contains("KENNEL_DATA_DIR"), "{page}");
    assert!(names(dir.path()).contains("kennel.1"));
    assert!(!names(dir.path()).contains("kennel-generate.1"));
}

#[test]
fn bash_completes_flags() {
    let dir = generated("completions");
    let expected = ["_kennel", "kennel.bash", "kennel.fish"].map(str::to_owned);
    assert_eq!(names(dir.path()), BTreeSet::from(expected));
    let script = "source \"$0\"; COMP_WORDS=(kennel up --sim); COMP_CWORD=2; _kennel kennel --sim up; echo ${COMPREPLY[@]}";
    let completed = Command::new("bash")
        .args(["-c", script])
        .arg(dir.path().join("kennel.bash"))
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8_lossy(&completed.stdout).trim(),
        "--simulate"
    );
    let printed = Command::new(BINARY).args(["completions", "bash"]).output();
    let written = fs::read(dir.path().join("kennel.bash")).unwrap();
    assert_eq!(printed.unwrap().stdout, written);
}

/// A cluster of two nodes that run nothing and one that does.
struct Cluster {
    admin: Access,
    agent: Agent,
    // Last, so that the agent ends first.
    _kennel: Kennel,
}

impl Cluster {
    fn start() -> Self {
        let kennel = Kennel::start(BINARY, &["up", "--nodes", "0", "--simulate", "2"]);
        let server = ["--server".to_owned(), kennel.url().to_owned()];
        let invitation = server.into_iter().chain(kennel.join_flags());
        // How full the disk of the tests' machine is must not matter.
        let own = [
            "--runtime=process",
            "--listen=127.0.0.1:0",
            "--node-ip=127.0.0.1",
            "--eviction-hard=memory.available<1Mi",
        ];
        let plan = AgentPlan {
            binary: BINARY.into(),
            node: "here".to_owned(),
            arguments: invitation.chain(own.map(str::to_owned)).collect(),
        };
        Self {
            admin: Access::admin(kennel.address(), &kennel.data_dir()),
            agent: Agent::start(plan, None),
            _kennel: kennel,
        }
    }

    fn apply(&self, name: &str, container: &Value) {
        let labels = json!({"app": name});
        let set = json!({
            "metadata": {"name": name},
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"hostNetwork": true, "terminationGracePeriodSeconds": 1, "containers": [container]},
                },
            },
        });
        let made = self
            .admin
            .ask("POST", DAEMON_SETS, set.to_string().as_bytes());
        assert_eq!(made.code, 201, "{}", made.text());
    }

    fn events(&self) -> Vec<Value> {
        let events = self.admin.ask("GET", "/api/v1/events", b"").json();
        events["items"].as_array().cloned().unwrap_or_default()
    }

    /// Waits until all these reasons were given.
    fn heard(&self, reasons: &[&str]) {
        eventually(Deadline::seconds(90), || {
            let events = self.events();
            let has = |reason: &&&str| events.iter().any(|event| event["reason"] == **reason);
            let missing: Vec<&&str> = reasons.iter().filter(|reason| !has(reason)).collect();
            let log = || self.agent.log();
            missing
                .is_empty()
                .then_some(())
                .ok_or_else(|| format!("not heard: {missing:?} in {events:?}\n{}", log()))
        });
    }

    /// Waits until the pods of a DaemonSet are gone: their processes would outlive the agent.
    fn is_gone(&self, name: &str) {
        let path = format!("/api/v1/namespaces/default/pods?labelSelector=app%3D{name}");
        eventually(Deadline::seconds(90), || {
            let pods = self.admin.ask("GET", &path, b"").json();
            let is_gone = pods["items"].as_array().is_some_and(Vec::is_empty);
            is_gone.then_some(()).ok_or_else(|| pods.to_string())
        });
    }

    fn metrics(&self, path: &str) -> Vec<(String, String)> {
        let page = self.admin.ask("GET", path, b"");
        assert_eq!(page.code, 200, "{}", page.text());
        let page = page.text();
        let types = page.lines().filter_map(|line| line.strip_prefix("# TYPE "));
        let types = types.filter_map(|line| line.split_once(' '));
        types
            .map(|(name, kind)| (name.to_owned(), kind.to_owned()))
            .collect()
    }
}

/// The section of a page with this heading.
fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let begin = page.find(&format!("\n## {heading}\n"));
    let begin = begin.unwrap_or_else(|| panic!("no section {heading}")) + 4;
    let end = page[begin..]
        .find("\n## ")
        .map_or(page.len(), |end| begin + end);
    &page[begin..end]
}

fn look_up_events(events: &[Value]) {
    let page = fs::read_to_string(docs().join("events.md")).unwrap();
    for event in events {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let section = section(&page, &text(&event["source"]["component"]));
        let [reason, kind, about] = [
            &event["reason"],
            &event["type"],
            &event["involvedObject"]["kind"],
        ]
        .map(text);
        let row = format!("\n| `{reason}` | {kind} | {about} |");
        assert!(section.contains(&row), "{row} in {section}");
    }
}

fn look_up_metrics(shown: &[(String, String)], some: &[&str]) {
    let page = fs::read_to_string(docs().join("metrics.md")).unwrap();
    for (name, kind) in shown {
        let row = format!("\n| `{name}` | {kind} |");
        assert!(page.contains(&row), "{row}");
    }
    for name in some {
        assert!(shown.iter().any(|(shown, _)| shown == name), "{name}");
    }
}

#[test]
fn what_a_cluster_shows_is_in_the_reference() {
    let cluster = Cluster::start();
    let sh = |name: &str, script: &str| json!({"name": name, "image": "none", "command": ["/bin/sh", "-c", script]});
    let mut unwell = sh("unwell", "exec sleep 1000");
    unwell["readinessProbe"] = json!({"exec": {"command": ["/bin/false"]}, "periodSeconds": 1});
    cluster.apply("unwell", &unwell);
    cluster.apply("ends", &sh("ends", "exit 1"));
    let pods = ["SuccessfulCreate", "Scheduled", "Created", "Started"];
    cluster.heard(&pods);
    cluster.heard(&["RegisteredNode", "Unhealthy", "BackOff"]);
    let path = format!("{DAEMON_SETS}/unwell");
    assert_eq!(cluster.admin.ask("DELETE", &path, b"").code, 200);
    cluster.heard(&["Killing"]);
    cluster.is_gone("unwell");
    look_up_events(&cluster.events());
    let server = [
        "kennel_requests_total",
        "kennel_component_requests_total",
        "kennel_daemonset_syncs_total",
        "scheduler_schedule_attempts_total",
    ];
    look_up_metrics(&cluster.metrics("/metrics"), &server);
    let agent = ["kubelet_running_pods", "kubelet_runtime_operations_total"];
    let shown = cluster.metrics("/api/v1/nodes/here/proxy/metrics");
    look_up_metrics(&shown, &agent);
}
