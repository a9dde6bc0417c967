//! Makes docs/rollout.svg: a real release on simulated nodes that goes back by itself, as `kennel rollout report` shows it.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::bench_suite::server::Server;

const PICTURE: &str = "docs/rollout.svg";
const NODES: u32 = 12;
const MAX_UNAVAILABLE: u32 = 2;
/// One node, then half, then all.
const STAGES: &str = "1 2s, 50%, 100%";
/// Durations of small daemons; the new version crashes on one node, which the second stage reaches last.
const SCENARIO: &str = "
pods:
- {image: 'agent:2', node: sim-9, pull: 600ms-2s, start: 300ms, ready: 1m, stop: 1s, exits: {after: 800ms}}
- {pull: 600ms-2s, start: 300ms, ready: 500ms-1500ms, stop: 1s}
";
/// What the report logs once it sees the state before the rollout.
const WAITS: &str = "waits for the next rollout";

pub(crate) fn run() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    let root = root.context("xtask has no parent directory")?;
    let server = Server::up_with(|dir| {
        let scenario = dir.join("scenario.yaml");
        std::fs::write(&scenario, SCENARIO)?;
        let scenario = scenario.to_string_lossy().into_owned();
        let nodes = NODES.to_string();
        Ok(["--simulate", &nodes, "--scenario", &scenario]
            .map(str::to_owned)
            .to_vec())
    })?;
    let kubectl = Kubectl::new(root, server.data_dir());
    let manifest = server.data_dir().join("agent.json");
    std::fs::write(&manifest, daemon_set().to_string())?;
    kubectl.run(&["apply", "-f", &manifest.to_string_lossy()])?;
    kubectl.run(&["rollout", "status", "ds/agent", "--timeout=5m"])?;
    let mut report = Report::start(&server, &root.join(PICTURE))?;
    kubectl.run(&["set", "image", "ds/agent", "agent=agent:2"])?;
    report.finish()
}

fn daemon_set() -> Value {
    let labels = json!({"app": "agent"});
    let policy = json!({
        "rollout.kennel.dev/stages": STAGES,
        "rollout.kennel.dev/on-failure": "rollback",
        "rollout.kennel.dev/max-restarts": "0",
    });
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": "agent", "annotations": policy},
        "spec": {
            "selector": {"matchLabels": labels},
            "updateStrategy": {"rollingUpdate": {"maxUnavailable": MAX_UNAVAILABLE}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "agent", "image": "agent:1"}]},
            },
        },
    })
}

/// `kennel rollout report`, which waits for the next rollout.
struct Report(Child);

impl Report {
    fn start(server: &Server, file: &Path) -> Result<Self> {
        let mut child = Command::new(server.binary())
            .args(["--log", "info", "rollout", "report", "ds/agent", "--next"])
            .args(["--output=svg", "--for=5m", "--kubeconfig"])
            .arg(server.data_dir().join("admin.kubeconfig"))
            .arg("--file")
            .arg(file)
            .stderr(Stdio::piped())
            .spawn()?;
        let stderr = child.stderr.take().context("stderr was piped")?;
        let report = Self(child);
        let mut lines = BufReader::new(stderr).lines();
        let waits = lines.any(|line| line.is_ok_and(|line| line.contains(WAITS)));
        ensure!(waits, "the report ended before the rollout");
        // Keeps the pipe open until the report ends.
        std::thread::spawn(move || lines.count());
        Ok(report)
    }

    fn finish(&mut self) -> Result<()> {
        let status = self.0.wait()?;
        ensure!(status.success(), "the report failed");
        Ok(())
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        // It may have exited already.
        let _exited = self.0.kill();
        let _reaped = self.0.wait();
    }
}

struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
}

impl Kubectl {
    /// The tests' kubectl if it is installed, else the one on PATH.
    fn new(root: &Path, data: &Path) -> Self {
        let tool = root.join(".tools/kubectl-1.32");
        Self {
            program: if tool.exists() {
                tool
            } else {
                "kubectl".into()
            },
            kubeconfig: data.join("admin.kubeconfig"),
        }
    }

    fn run(&self, arguments: &[&str]) -> Result<()> {
        let mut command = Command::new(&self.program);
        command.arg("--kubeconfig").arg(&self.kubeconfig);
        let status = command.args(arguments).status();
        let status = status.with_context(|| format!("cannot run {}", self.program.display()))?;
        ensure!(status.success(), "kubectl {} failed", arguments.join(" "));
        Ok(())
    }
}
