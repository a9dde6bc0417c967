//! A node of its own process that runs plain processes: what it weighs at rest, and what it adds to a start.
//!
//! Ten pods with `sleep` in them, through the whole of it: API, scheduler, agent, shim.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use kennel_core::spread::Spread;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::client::Http1;
use super::report::{Report, say};
use super::server::{Server, processor_time, resident};
use super::{megabytes, milliseconds};

/// How many pods run while it is weighed.
const PODS: usize = 10;
/// From the last start to the weighing.
const REST: Duration = Duration::from_mins(1);
/// How many pods are started one after the other for the time a start takes.
const STARTS: usize = 20;
/// What anything may take.
const PATIENCE: Duration = Duration::from_mins(1);
const POLL: Duration = Duration::from_millis(5);
const PODS_PATH: &str = "/api/v1/namespaces/default/pods";
const NODE: &str = "bench";

/// Measures it.
pub(super) async fn measure(report: &mut Report) -> Result<()> {
    let server = Server::up()?;
    let target = server.target()?;
    let mut api = target.http1().await?;
    let agent = Agent::start(&server)?;
    let node = wait("the node", &mut api, "/api/v1/nodes/bench", is_ready).await;
    node.with_context(|| format!("the agent's log:\n{}", agent.log()))?;
    let added = starts(&mut api).await?;
    report.judge(
        "agent, bound → started",
        format!("{} median of {STARTS}", milliseconds(added.median())),
        "≤ 50 ms",
        added.median() <= Duration::from_millis(50),
    );
    for number in 0..PODS {
        let name = format!("rest-{number}");
        create(&mut api, &name).await?;
        let path = format!("{PODS_PATH}/{name}");
        wait(&name, &mut api, &path, is_running).await?;
    }
    say(format_args!(
        "{PODS} pods run; resting {} s",
        REST.as_secs()
    ));
    let (before, began) = (processor_time(&agent.pid())?, Instant::now());
    tokio::time::sleep(REST).await;
    let used = processor_time(&agent.pid())?.saturating_sub(before);
    let share = 100.0 * used.as_secs_f64() / began.elapsed().as_secs_f64();
    let weight = megabytes(resident(&agent.pid())?);
    let shims = shims(&agent)?;
    let heaviest = shims.iter().copied().max().unwrap_or(0);
    ensure!(shims.len() >= PODS, "only {} shims were found", shims.len());
    report.judge(
        "agent, resident",
        format!("{weight:.1} MB"),
        "≤ 15 MB",
        weight <= 15.0,
    );
    report.judge(
        "agent, at rest",
        format!("{share:.2} %"),
        "< 0.5 %",
        share < 0.5,
    );
    let heaviest = megabytes(heaviest);
    report.judge(
        "shim, resident",
        format!("{heaviest:.2} MB"),
        "≤ 2 MB",
        heaviest <= 2.0,
    );
    // The server has closed a connection that said nothing for so long.
    let mut api = target.http1().await?;
    for number in 0..PODS {
        remove(&mut api, &format!("rest-{number}")).await?;
    }
    Ok(())
}

/// Starts pods one after the other; how long each took from bound to started, as the API's watchers see it.
async fn starts(api: &mut Http1) -> Result<Spread> {
    let mut taken = Vec::new();
    for number in 0..STARTS {
        let name = format!("start-{number}");
        // Bound by its creation: no scheduler lies in between.
        let begin = Instant::now();
        create(api, &name).await?;
        let path = format!("{PODS_PATH}/{name}");
        wait(&name, api, &path, is_running).await?;
        taken.push(begin.elapsed());
        remove(api, &name).await?;
    }
    Ok(taken.into_iter().collect())
}

async fn create(api: &mut Http1, name: &str) -> Result<()> {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "nodeName": NODE, "hostNetwork": true, "hostPID": true, "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": false, "dnsPolicy": "Default",
            "containers": [{"name": "sleep", "image": "none", "command": ["sleep", "100000"]}],
        },
    });
    let made = api.create(PODS_PATH, pod.to_string().into()).await;
    made.map(drop)
}

async fn remove(api: &mut Http1, name: &str) -> Result<()> {
    let path = format!("{PODS_PATH}/{name}");
    let answer = api
        .send(http::Method::DELETE, &path, bytes::Bytes::new())
        .await?;
    super::drain(answer).await?;
    let deadline = Instant::now() + PATIENCE;
    while api.get(&path).await.is_ok() {
        ensure!(Instant::now() < deadline, "{name} does not go");
        tokio::time::sleep(POLL).await;
    }
    Ok(())
}

async fn wait(what: &str, api: &mut Http1, path: &str, is: fn(&Value) -> bool) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let seen = api.get(path).await.unwrap_or_default();
        let seen: Value = serde_json::from_slice(&seen).unwrap_or_default();
        if is(&seen) {
            return Ok(());
        }
        ensure!(
            Instant::now() < deadline,
            "{what} is not there in time: {seen}"
        );
        tokio::time::sleep(POLL).await;
    }
}

fn is_ready(node: &Value) -> bool {
    let conditions = node["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|one| one["type"] == "Ready" && one["status"] == "True")
}

fn is_running(pod: &Value) -> bool {
    pod["status"]["containerStatuses"][0]["state"]["running"].is_object()
}

/// A `kennel agent` beside the server.
struct Agent {
    child: Child,
    data: TempDir,
}

impl Agent {
    fn start(server: &Server) -> Result<Self> {
        let data = TempDir::with_prefix("kennel-agent-")?;
        let log = fs::File::create(data.path().join("log"))?;
        let child = Command::new(server.binary())
            .args([
                "agent",
                "--runtime=process",
                "--listen=127.0.0.1:0",
                "--node-name",
                NODE,
            ])
            // However full this machine is.
            .arg("--eviction-hard=memory.available<1Mi")
            .arg("--kubeconfig")
            .arg(server.data_dir().join("admin.kubeconfig"))
            .arg("--data-dir")
            .arg(data.path().join("agent"))
            .arg("--log-dir")
            .arg(data.path().join("logs"))
            .arg("--manifest-dir")
            .arg(data.path().join("manifests"))
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()?;
        Ok(Self { child, data })
    }

    fn log(&self) -> String {
        fs::read_to_string(self.data.path().join("log")).unwrap_or_default()
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // It may have ended already, which is what is asked for. What it ran was removed before, or is ended here.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
        let shims = owned(self).unwrap_or_default();
        let children = shims.iter().flat_map(|pid| children(*pid));
        for pid in children.chain(shims.iter().copied()) {
            if let Some(pid) = Pid::from_raw(pid) {
                let _gone = kill_process(pid, Signal::KILL);
            }
        }
    }
}

fn children(pid: i32) -> Vec<i32> {
    let listed = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let listed = listed.unwrap_or_default();
    listed
        .split_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

/// The resident memory of the agent's shims, in bytes.
fn shims(agent: &Agent) -> Result<Vec<u64>> {
    let all = owned(agent)?;
    let sizes = all.iter().filter_map(|pid| resident(&pid.to_string()).ok());
    Ok(sizes.collect())
}

/// The shims whose command line names the agent's directory.
fn owned(agent: &Agent) -> Result<Vec<i32>> {
    let dir = agent.data.path().display().to_string();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let Some(pid) = entry?
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command);
        if command.contains(&dir) && u32::try_from(pid).ok() != Some(agent.child.id()) {
            found.push(pid);
        }
    }
    Ok(found)
}
