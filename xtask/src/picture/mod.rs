//! The picture of a rollout: a real rolling update on simulated nodes, watched through kubectl and drawn as SVG.
//!
//! ```text
//!   kennel up --simulate ──kubectl get pods --watch──▶ lives ─▶ drawing ─▶ docs/rollout.svg
//! ```

mod drawing;
mod lives;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::bench_suite::server::Server;
use lives::Seen;

/// Where it is drawn.
const PICTURE: &str = "docs/rollout.svg";
const NODES: u32 = 12;
const MAX_UNAVAILABLE: u32 = 2;
/// Pods take as long as small daemons do.
const SCENARIO: &str = "pods:\n- {pull: 600ms-2s, start: 300ms, ready: 500ms-1500ms, stop: 1s}\n";
/// What is shown of the time before the update, and after it.
const AROUND: Duration = Duration::from_millis(1500);

/// Runs an update, and draws it.
pub(crate) fn run() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    let root = root.context("xtask lies in the repository")?;
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
    kubectl.rolled_out()?;
    let mut watch = Watch::begin(&kubectl)?;
    std::thread::sleep(AROUND);
    let began = Instant::now();
    kubectl.run(&["set", "image", "ds/agent", "agent=agent:2"])?;
    kubectl.rolled_out()?;
    let took = began.elapsed();
    std::thread::sleep(AROUND);
    let seen = watch.end(began);
    let lives = lives::of(&seen);
    let drawing = drawing::Drawing {
        lives: &lives,
        from: -AROUND.as_secs_f64(),
        took: took.as_secs_f64(),
        to: began.elapsed().as_secs_f64(),
        max_unavailable: MAX_UNAVAILABLE,
    };
    std::fs::write(root.join(PICTURE), drawing.svg())?;
    Ok(())
}

fn daemon_set() -> Value {
    let labels = json!({"app": "agent"});
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent"},
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

/// A kubectl that knows its cluster.
struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
}

impl Kubectl {
    /// The tests' kubectl if it is there, else the one on the path.
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

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .args(words);
        command
    }

    fn run(&self, words: &[&str]) -> Result<()> {
        let status = self.command(words).status();
        let status = status.with_context(|| format!("cannot run {}", self.program.display()))?;
        ensure!(status.success(), "kubectl {} failed", words.join(" "));
        Ok(())
    }

    fn rolled_out(&self) -> Result<()> {
        self.run(&["rollout", "status", "ds/agent", "--timeout=5m"])
    }
}

/// A kubectl that watches pods, and what it has said so far.
struct Watch {
    child: Child,
    heard: mpsc::Receiver<(Instant, Value)>,
}

impl Watch {
    fn begin(kubectl: &Kubectl) -> Result<Self> {
        let words = [
            "get",
            "pods",
            "--watch",
            "--output-watch-events",
            "-o",
            "json",
        ];
        let mut child = kubectl.command(&words).stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().context("stdout was piped")?;
        let (tell, heard) = mpsc::channel();
        std::thread::spawn(move || {
            let said = serde_json::Deserializer::from_reader(std::io::BufReader::new(stdout));
            for event in said.into_iter::<Value>().map_while(Result::ok) {
                if tell.send((Instant::now(), event)).is_err() {
                    return;
                }
            }
        });
        Ok(Self { child, heard })
    }

    /// What was seen, in seconds since `began`.
    fn end(&mut self, began: Instant) -> Vec<Seen> {
        let since = |at: Instant| match at.checked_duration_since(began) {
            Some(after) => after.as_secs_f64(),
            None => -began.duration_since(at).as_secs_f64(),
        };
        let heard = self.heard.try_iter();
        heard.map(|(at, event)| (since(at), event)).collect()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // It may have ended already, which is what is asked for.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}
