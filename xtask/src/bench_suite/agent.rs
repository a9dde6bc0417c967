//! A node agent with the process runtime: its memory and CPU use when idle, and how fast it starts pods.
//!
//! Runs ten pods with `sleep` beside a hundred services, with API server, scheduler, agent and shims.

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
use super::server::{Server, cpu_time, resident_bytes};
use super::{megabytes, milliseconds, own_network, services};

/// Pods that run during the idle measurement.
const PODS: usize = 10;
/// Services that the agent routes meanwhile, of ten endpoints each.
const SERVICES: usize = 100;
/// Duration of the idle measurement.
const IDLE_TIME: Duration = Duration::from_mins(1);
/// Pods started one after the other to measure the start latency.
const STARTS: usize = 20;
const TIMEOUT: Duration = Duration::from_mins(1);
const POLL_INTERVAL: Duration = Duration::from_millis(5);
const PODS_PATH: &str = "/api/v1/namespaces/default/pods";
pub(super) const NODE: &str = "bench";

/// With services, in a network of its own, if that can be made.
pub(super) fn measure(report: &mut Report) -> Result<()> {
    if own_network::is_possible("services of the agent") {
        let measured = own_network::run(|runtime| runtime.block_on(measure_with(report, SERVICES)));
        return measured;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(measure_with(report, 0))
}

async fn measure_with(report: &mut Report, services: usize) -> Result<()> {
    let server = Server::up()?;
    let target = server.target()?;
    let mut api = target.http1().await?;
    services::create(&mut api, 0..services).await?;
    let proxy = if services > 0 { "nftables" } else { "none" };
    let agent = Agent::start_with(&server, &[&format!("--proxy={proxy}")])?;
    let node = wait("the node", &mut api, "/api/v1/nodes/bench", is_ready).await;
    node.with_context(|| format!("the agent's log:\n{}", agent.log()))?;
    let latencies = start_latencies(&mut api).await?;
    report.judge(
        "agent, bound → started",
        format!("{} median of {STARTS}", milliseconds(latencies.median())),
        "≤ 50 ms",
        latencies.median() <= Duration::from_millis(50),
    );
    for number in 0..PODS {
        let name = format!("idle-{number}");
        create(&mut api, &name).await?;
        let path = format!("{PODS_PATH}/{name}");
        wait(&name, &mut api, &path, is_running).await?;
    }
    say(format_args!(
        "{PODS} pods run; idle for {} s",
        IDLE_TIME.as_secs()
    ));
    let (before, started_at) = (cpu_time(&agent.pid())?, Instant::now());
    tokio::time::sleep(IDLE_TIME).await;
    let used = cpu_time(&agent.pid())?.saturating_sub(before);
    let share = 100.0 * used.as_secs_f64() / started_at.elapsed().as_secs_f64();
    let memory = megabytes(resident_bytes(&agent.pid())?);
    let shims = shim_memory(&agent)?;
    let largest = shims.iter().copied().max().unwrap_or(0);
    ensure!(shims.len() >= PODS, "found only {} shims", shims.len());
    report.judge(
        format!("agent, resident, {PODS} pods, {services} services"),
        format!("{memory:.1} MB"),
        "≤ 15 MB",
        memory <= 15.0,
    );
    let all = memory + megabytes(shims.iter().sum());
    report.judge(
        format!("agent with its {} shims, resident", shims.len()),
        format!("{all:.1} MB"),
        "≤ 35 MB",
        all <= 35.0,
    );
    report.judge(
        "agent, at rest",
        format!("{share:.2} %"),
        "< 0.5 %",
        share < 0.5,
    );
    let largest = megabytes(largest);
    report.judge(
        "shim, resident",
        format!("{largest:.2} MB"),
        "≤ 2 MB",
        largest <= 2.0,
    );
    // The server has closed the idle connection.
    let mut api = target.http1().await?;
    for number in 0..PODS {
        remove(&mut api, &format!("idle-{number}")).await?;
    }
    Ok(())
}

/// Starts pods one after the other; returns the times from bound to running, as the API shows them.
async fn start_latencies(api: &mut Http1) -> Result<Spread> {
    let mut latencies = Vec::new();
    for number in 0..STARTS {
        let name = format!("start-{number}");
        // Created with nodeName, so that no scheduler is involved.
        let started_at = Instant::now();
        create(api, &name).await?;
        let path = format!("{PODS_PATH}/{name}");
        wait(&name, api, &path, is_running).await?;
        latencies.push(started_at.elapsed());
        remove(api, &name).await?;
    }
    Ok(latencies.into_iter().collect())
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
    let created = api.create(PODS_PATH, pod.to_string().into()).await;
    created.map(drop)
}

async fn remove(api: &mut Http1, name: &str) -> Result<()> {
    let path = format!("{PODS_PATH}/{name}");
    let answer = api
        .send(http::Method::DELETE, &path, bytes::Bytes::new())
        .await?;
    super::drain(answer).await?;
    let deadline = Instant::now() + TIMEOUT;
    while api.get(&path).await.is_ok() {
        ensure!(Instant::now() < deadline, "{name} is not deleted in time");
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Ok(())
}

async fn wait(what: &str, api: &mut Http1, path: &str, done: fn(&Value) -> bool) -> Result<()> {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let object = api.get(path).await.unwrap_or_default();
        let object: Value = serde_json::from_slice(&object).unwrap_or_default();
        if done(&object) {
            return Ok(());
        }
        ensure!(
            Instant::now() < deadline,
            "{what} is not ready in time: {object}"
        );
        tokio::time::sleep(POLL_INTERVAL).await;
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
pub(super) struct Agent {
    child: Child,
    data: TempDir,
}

impl Agent {
    pub(super) fn start_with(server: &Server, flags: &[&str]) -> Result<Self> {
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
            // No evictions on a machine that is nearly full.
            .arg("--eviction-hard=memory.available<1Mi")
            .arg("--kubeconfig")
            .arg(server.data_dir().join("admin.kubeconfig"))
            .arg("--data-dir")
            .arg(data.path().join("agent"))
            .arg("--log-dir")
            .arg(data.path().join("logs"))
            .arg("--manifest-dir")
            .arg(data.path().join("manifests"))
            .args(flags)
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()?;
        Ok(Self { child, data })
    }

    pub(super) fn log(&self) -> String {
        fs::read_to_string(self.data.path().join("log")).unwrap_or_default()
    }

    pub(super) fn pid(&self) -> String {
        self.child.id().to_string()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // It may have exited already. Pods that were not removed before are killed here.
        let _exited = self.child.kill();
        let _reaped = self.child.wait();
        let shims = shims(self).unwrap_or_default();
        let children = shims.iter().flat_map(|pid| children(*pid));
        for pid in children.chain(shims.iter().copied()) {
            if let Some(pid) = Pid::from_raw(pid) {
                let _exited = kill_process(pid, Signal::KILL);
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
fn shim_memory(agent: &Agent) -> Result<Vec<u64>> {
    let all = shims(agent)?;
    let sizes = all
        .iter()
        .filter_map(|pid| resident_bytes(&pid.to_string()).ok());
    Ok(sizes.collect())
}

/// The pids of the processes whose command line contains the agent's directory.
fn shims(agent: &Agent) -> Result<Vec<i32>> {
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
