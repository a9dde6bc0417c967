//! Checks at the end of stages (R7): a real Prometheus, a webhook, and hosts that are not allowed.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use kennel_testkit::{Controller, Deadline, eventually, fetch};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::fixture::{Fixture, WATCH};
use super::page::Page;
use crate::why::fixture::KENNEL;

const TIMEOUT_SECONDS: u64 = 60;

/// Debian's, as `scripts/prometheus.sh` fetches it, on a free port.
struct Prometheus {
    child: Child,
    dir: TempDir,
}

impl Prometheus {
    /// Scrapes a page every second.
    fn start(target: SocketAddr) -> Self {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools/prometheus");
        assert!(program.exists(), "no Prometheus: run scripts/prometheus.sh");
        let dir = TempDir::new().unwrap();
        let config = json!({"scrape_configs": [{
            "job_name": "agent", "scrape_interval": "1s", "scrape_timeout": "1s",
            "static_configs": [{"targets": [target.to_string()]}]}]});
        std::fs::write(dir.path().join("prometheus.yml"), config.to_string()).unwrap();
        let log = std::fs::File::create(dir.path().join("log")).unwrap();
        let child = Command::new(program)
            .current_dir(dir.path())
            .args(["--config.file=prometheus.yml", "--storage.tsdb.path=data"])
            .arg("--web.listen-address=127.0.0.1:0")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        Self { child, dir }
    }

    fn address(&self) -> SocketAddr {
        eventually(Deadline::seconds(TIMEOUT_SECONDS), || {
            let log = std::fs::read_to_string(self.dir.path().join("log")).unwrap();
            let line = log.lines().find(|line| line.contains("\"Listening on\""));
            let address = line.and_then(|line| line.rsplit_once("address="));
            address
                .and_then(|(_, address)| address.parse().ok())
                .ok_or(log)
        })
    }

    /// Waits until a query has this answer.
    fn wait_for(&self, query: &str, value: &str) {
        let address = self.address();
        eventually(Deadline::seconds(TIMEOUT_SECONDS), || {
            let path = format!("/api/v1/query?query={query}");
            let answer = fetch(address, &path).map_err(|error| error.to_string())?;
            let found = answer.contains(&format!("\"{value}\"]"));
            found.then_some(()).ok_or(answer)
        });
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // It may have exited already.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

fn errors(count: u32) -> String {
    format!("agent_errors{{daemonset=\"agent\",namespace=\"default\"}} {count}\n")
}

#[test]
fn r7_a_release_that_prometheus_finds_bad_goes_back_and_a_good_one_goes_on() {
    let metrics = Page::new(200, &errors(7));
    let prometheus = Prometheus::start(metrics.address);
    prometheus.wait_for("agent_errors", "7");
    let url = format!("http://{}", prometheus.address());
    let check = r#"prometheus sum(agent_errors{daemonset="$daemonset", namespace="$namespace"})
        - (sum(agent_errors{revision="$revision"}) or vector(0)) < 5"#;
    let policy = [
        ("stages", "1 1s, 100%"),
        ("on-failure", "rollback"),
        ("check", check),
    ];
    let flags = ["--prometheus-url", &url];
    let fixture = Fixture::with_flags(&flags, "", 4, &policy);
    fixture.apply("2");
    let shown = fixture.check(&["status", "ds/agent", WATCH], 1);
    assert!(shown.contains("is 7, and not < 5"), "{shown}");
    assert_eq!(fixture.nodes_with("1").len(), 4);
    assert_eq!(
        fixture.json(&["status", "ds/agent"])["reason"]["code"],
        "CheckFailed"
    );

    metrics.show(200, &errors(4));
    prometheus.wait_for("agent_errors", "4");
    fixture.check(&["retry", "ds/agent"], 0);
    fixture.check(&["status", "ds/agent", WATCH], 0);
    assert_eq!(fixture.nodes_with("2").len(), 4);
}

#[test]
fn r7_a_query_that_prometheus_cannot_answer_is_asked_again() {
    let metrics = Page::new(200, &errors(1));
    let prometheus = Prometheus::start(metrics.address);
    prometheus.wait_for("agent_errors", "1");
    let url = format!("http://{}", prometheus.address());
    let flags = ["--prometheus-url", &url];
    for (expression, words) in [
        ("no_such_metric", "the expression yields nothing"),
        ("{job=\"agent\"}", "series and not one; aggregate them"),
        ("0 / 0", "the expression yields NaN"),
        ("sum(", "Prometheus cannot evaluate the expression: "),
        ("agent_errors[5m]", "the expression yields a matrix"),
    ] {
        let check = format!("prometheus {expression} < 5");
        let policy = [
            ("stages", "1, 100%"),
            ("on-failure", "rollback"),
            ("check", &*check),
        ];
        let fixture = Fixture::with_flags(&flags, "", 2, &policy);
        fixture.apply("2");
        fixture.wait_for_event("CheckInconclusive", words);
        fixture.wait_for_event("CheckInconclusive", "(try 1 of 3)");
        assert_eq!(fixture.nodes_with("2").len(), 1);
        fixture.check(&["status", "ds/agent"], 3);
    }
}

#[test]
fn r7_a_webhook_lets_a_release_go_on_or_fails_it() {
    let gate = Page::new(409, "the error budget is used up");
    let host = gate.address.to_string();
    let check = format!("webhook http://{host}/gate");
    let policy = [("stages", "1, 50%, 100%"), ("check", &*check)];
    let flags = ["--allow-check-host", &host];
    let fixture = Fixture::with_flags(&flags, "", 4, &policy);
    fixture.apply("2");
    // The default is to pause.
    let shown = fixture.check(&["status", "ds/agent", WATCH], 1);
    let said = "the webhook says no: the error budget is used up";
    assert!(shown.contains(said), "{shown}");
    assert_eq!(fixture.nodes_with("2").len(), 1);
    fixture.wait_for_event("RolloutPaused", said);
    let state: Value = serde_json::from_str(&gate.received()[0]).unwrap();
    let status = fixture.json(&["status", "ds/agent"]);
    assert_eq!(state["namespace"], "default");
    assert_eq!(state["daemonset"], "agent");
    assert_eq!(state["revision"], status["target"]);
    assert_eq!(state["stable"], status["stable"]);
    assert_eq!((&state["stage"], &state["attempt"]), (&json!(1), &json!(1)));

    // A person knows better: the stage is not checked again, later ones are.
    gate.show(200, "");
    fixture.check(&["promote", "ds/agent"], 0);
    fixture.check(&["status", "ds/agent", WATCH], 0);
    assert_eq!(fixture.nodes_with("2").len(), 4);
    let stages = gate.received().into_iter().map(|body| {
        let state: Value = serde_json::from_str(&body).unwrap();
        state["stage"].clone()
    });
    assert_eq!(stages.collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn r7_a_webhook_is_asked_only_where_it_is_allowed() {
    let gate = Page::new(200, "");
    let check = format!("webhook http://{}/", gate.address);
    let policy = [("stages", "1, 100%"), ("check", &*check)];
    let flags = ["--allow-check-host=gate.example.com,127.0.0.1:1"];
    let fixture = Fixture::with_flags(&flags, "", 2, &policy);
    fixture.apply("2");
    let words = "the webhook's host 127.0.0.1 is not allowed";
    fixture.wait_for_event("CheckInconclusive", words);
    assert!(gate.received().is_empty());
    assert_eq!(fixture.nodes_with("2").len(), 1);
}

#[test]
fn r7_https_needs_a_certificate_that_is_trusted() {
    // The API server is a server with a certificate; what it answers to a stranger is 401.
    let flags = ["--controllers=*,-daemonset-controller"];
    let cluster =
        crate::why::fixture::Fixture::with("", &[&["--simulate", "2"], &flags[..]].concat());
    let kubeconfig = cluster.kennel.kubeconfig();
    let authority = cluster.kennel.data_dir().join("pki/ca.crt");
    let url = format!("webhook {}/gate", cluster.kennel.url());
    let policy = [("stages", "1, 100%"), ("check", &*url)];
    let flags = ["--allow-check-host", "127.0.0.1", "--leader-elect=false"];
    let stranger = Controller::start(KENNEL, &kubeconfig, &flags);
    let fixture = Fixture::of(cluster, 2, &policy);
    fixture.apply("2");
    fixture.wait_for_event("CheckInconclusive", "invalid peer certificate");
    stranger.kill();
    let environment = [("SSL_CERT_FILE", &*authority)];
    let _friend = Controller::start_with(KENNEL, &kubeconfig, &flags, &environment);
    fixture.wait_for_event("CheckInconclusive", "the webhook answers with status 401");
}
