//! Draws docs/rollout.svg: a real release on simulated nodes that goes back by itself, watched with kubectl.
//!
//! ```text
//!   kennel up --simulate ──kubectl get --watch──▶ pod_lifetimes, phases ─▶ drawing ─▶ docs/rollout.svg
//! ```

mod drawing;
mod phases;
mod pod_lifetimes;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::bench_suite::server::Server;
use pod_lifetimes::TimedEvent;

const PICTURE: &str = "docs/rollout.svg";
const NODES: u32 = 12;
/// Far more events than a rollout of these nodes has; the reader blocks when it is full.
const EVENTS_MAX: usize = 10_000;
const MAX_UNAVAILABLE: u32 = 2;
/// One node, then half, then all.
const STAGES: &str = "1 2s, 50%, 100%";
/// Durations of small daemons; the new version crashes on one node, which the second stage reaches last.
const SCENARIO: &str = "
pods:
- {image: 'agent:2', node: sim-9, pull: 600ms-2s, start: 300ms, ready: 1m, stop: 1s, exits: {after: 800ms}}
- {pull: 600ms-2s, start: 300ms, ready: 500ms-1500ms, stop: 1s}
";
/// Time shown before and after the update.
const MARGIN: Duration = Duration::from_millis(1500);

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
    kubectl.wait_for_rollout()?;
    let mut pods = Watch::start(&kubectl, "pods")?;
    let mut revisions = Watch::start(&kubectl, "controllerrevisions")?;
    std::thread::sleep(MARGIN);
    let started_at = Instant::now();
    kubectl.run(&["set", "image", "ds/agent", "agent=agent:2"])?;
    kubectl.wait_for("Stalled=true")?;
    kubectl.wait_for("Progressing=false")?;
    let all = format!("--for=jsonpath={{.status.numberAvailable}}={NODES}");
    kubectl.run(&["wait", "ds/agent", &all, "--timeout=5m"])?;
    std::thread::sleep(MARGIN);
    let drawing = drawing::Drawing {
        lifetimes: &pod_lifetimes::of(&pods.events_since(started_at)),
        phases: &phases::of(&revisions.events_since(started_at)),
        stages: STAGES,
        from: -MARGIN.as_secs_f64(),
        to: started_at.elapsed().as_secs_f64(),
        max_unavailable: MAX_UNAVAILABLE,
    };
    std::fs::write(root.join(PICTURE), drawing.svg())?;
    Ok(())
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

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .args(arguments);
        command
    }

    fn run(&self, arguments: &[&str]) -> Result<()> {
        let status = self.command(arguments).status();
        let status = status.with_context(|| format!("cannot run {}", self.program.display()))?;
        ensure!(status.success(), "kubectl {} failed", arguments.join(" "));
        Ok(())
    }

    fn wait_for(&self, condition: &str) -> Result<()> {
        let condition = format!("--for=condition={condition}");
        self.run(&["wait", "ds/agent", &condition, "--timeout=5m"])
    }

    fn wait_for_rollout(&self) -> Result<()> {
        self.run(&["rollout", "status", "ds/agent", "--timeout=5m"])
    }
}

/// `kubectl get --watch`, and the events so far.
struct Watch {
    child: Child,
    events: mpsc::Receiver<(Instant, Value)>,
}

impl Watch {
    fn start(kubectl: &Kubectl, resource: &str) -> Result<Self> {
        let arguments = [
            "get",
            resource,
            "--watch",
            "--output-watch-events",
            "-o",
            "json",
        ];
        let mut child = kubectl.command(&arguments).stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().context("stdout was piped")?;
        let (sender, events) = mpsc::sync_channel(EVENTS_MAX);
        std::thread::spawn(move || {
            let stream = serde_json::Deserializer::from_reader(std::io::BufReader::new(stdout));
            for event in stream.into_iter::<Value>().map_while(Result::ok) {
                if sender.send((Instant::now(), event)).is_err() {
                    return;
                }
            }
        });
        Ok(Self { child, events })
    }

    /// The events, with their times in seconds since `start`.
    fn events_since(&mut self, start: Instant) -> Vec<TimedEvent> {
        let since = |at: Instant| match at.checked_duration_since(start) {
            Some(after) => after.as_secs_f64(),
            None => -start.duration_since(at).as_secs_f64(),
        };
        let events = self.events.try_iter();
        events.map(|(at, event)| (since(at), event)).collect()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // It may have exited already.
        let _exited = self.child.kill();
        let _reaped = self.child.wait();
    }
}
