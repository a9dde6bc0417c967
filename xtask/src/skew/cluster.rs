//! A cluster of one server and one agent as processes of this machine, driven with kubectl.

use std::fs::{self, File};
use std::io::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tempfile::TempDir;

const NODE: &str = "skew";
const TIMEOUT: Duration = Duration::from_mins(2);
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// What identifies the containers that run, and how often they were restarted.
const CONTAINERS: &str = "jsonpath={range .items[*]}{.metadata.uid} {.status.containerStatuses[0].containerID} \
     {.status.containerStatuses[0].restartCount}{\"\\n\"}{end}";

pub(super) struct Cluster {
    dir: TempDir,
    address: String,
    kubectl: PathBuf,
    /// The program that ends what agents leave.
    cleaner: PathBuf,
    server: Option<Child>,
    agent: Option<Child>,
    /// How the agent joins: options, and the token.
    invitation: (Vec<String>, String),
}

impl Cluster {
    pub(super) fn new(kubectl: &Path, cleaner: &Path) -> Result<Self> {
        let free = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        Ok(Self {
            dir: TempDir::with_prefix("kennel-skew-")?,
            address: free.to_string(),
            kubectl: kubectl.to_owned(),
            cleaner: cleaner.to_owned(),
            server: None,
            agent: None,
            invitation: (Vec::new(), String::new()),
        })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn spawn(&self, command: &mut Command, name: &str) -> Result<Child> {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.file(name))?;
        let spawned = command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn();
        Ok(spawned?)
    }

    /// Returns when the server is ready.
    pub(super) fn start_server(&mut self, program: &Path) -> Result<()> {
        let mut command = Command::new(program);
        command
            .args(["up", "--nodes=0", "--listen", &self.address, "--data-dir"])
            .arg(self.file("server"));
        self.server = Some(self.spawn(&mut command, "server.log")?);
        self.until("the server", || {
            self.kubectl(&["get", "--raw", "/readyz"]).map(drop)
        })
    }

    pub(super) fn stop_server(&mut self) -> Result<()> {
        stop(self.server.take())
    }

    /// Starts a server that must not start on this data, and checks what it says.
    pub(super) fn refuses_data(&mut self, program: &Path) -> Result<()> {
        let seconds = TIMEOUT.as_secs().to_string();
        let output = Command::new("timeout")
            .arg(seconds)
            .arg(program)
            .args(["up", "--nodes=0", "--listen", &self.address, "--data-dir"])
            .arg(self.file("server"))
            .output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.code() == Some(1), "{}: {said}", output.status);
        let words = ["has schema version ", "this program knows versions up to "];
        ensure!(words.iter().all(|words| said.contains(words)), "{said}");
        Ok(())
    }

    /// Joins as users do: with what `token create` of the server's version prints. Returns when the node is ready.
    pub(super) fn join(&mut self, server: &Path, agent: &Path) -> Result<()> {
        let output = Command::new(server)
            .args([
                "token",
                "create",
                "--server",
                &format!("https://{}", self.address),
            ])
            .arg("--data-dir")
            .arg(self.file("server"))
            .output()?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "token create: {errors}");
        self.invitation = invitation(&String::from_utf8(output.stdout)?)?;
        self.start_agent(agent)
    }

    /// Returns when the agent speaks for its node, and that is ready.
    pub(super) fn start_agent(&mut self, program: &Path) -> Result<()> {
        let renewed = self.renewed();
        let mut command = Command::new(program);
        let (options, token) = &self.invitation;
        command
            .args(options)
            .args([
                "--runtime=process",
                "--listen=127.0.0.1:0",
                "--node-ip=127.0.0.1",
            ])
            .args(["--node-name", NODE, "--eviction-hard=memory.available<1Mi"])
            .arg("--data-dir")
            .arg(self.file("agent"))
            .arg("--log-dir")
            .arg(self.file("logs"))
            .arg("--manifest-dir")
            .arg(self.file("manifests"))
            .env("KENNEL_TOKEN", token);
        self.agent = Some(self.spawn(&mut command, "agent.log")?);
        self.until("a renewed lease of the node", || {
            ensure!(self.renewed() != renewed, "the lease is not renewed");
            Ok(())
        })?;
        let node = format!("node/{NODE}");
        let ready = ["wait", "--for=condition=Ready", &node, "--timeout=60s"];
        self.kubectl(&ready).map(drop)
    }

    fn renewed(&self) -> Option<String> {
        let lease = ["get", "lease", NODE, "-n", "kube-node-lease"];
        let output = ["-o", "jsonpath={.spec.renewTime}"];
        self.kubectl(&[&lease[..], &output].concat()).ok()
    }

    pub(super) fn kill_agent(&mut self) -> Result<()> {
        let mut agent = self.agent.take().context("no agent runs")?;
        agent.kill()?;
        agent.wait()?;
        Ok(())
    }

    pub(super) fn stop_agent(&mut self) -> Result<()> {
        stop(self.agent.take())
    }

    /// Applies a version of the DaemonSet. Returns when it is rolled out.
    pub(super) fn roll_out(&self, version: &str) -> Result<()> {
        let labels = json!({"app": NODE});
        let command = format!("echo version {version}; exec sleep 86463");
        let manifest = json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": NODE},
            "spec": {"selector": {"matchLabels": labels}, "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "hostNetwork": true, "hostPID": true, "terminationGracePeriodSeconds": 1,
                    "containers": [{"name": "daemon", "image": "none", "command": ["sh", "-c", command]}],
                },
            }},
        });
        self.kubectl_with(&["apply", "-f", "-"], &manifest.to_string())?;
        let daemonset = format!("daemonset/{NODE}");
        self.kubectl(&["rollout", "status", &daemonset, "--timeout=90s"])?;
        // The old pod may still be ending.
        self.until("one pod", || {
            let pods = self.containers()?.lines().count();
            ensure!(pods == 1, "{pods} pods");
            Ok(())
        })
    }

    pub(super) fn logs_and_exec(&self, version: &str) -> Result<()> {
        let pod = self.kubectl(&["get", "pods", "-l", "app=skew", "-o", "name"])?;
        let pod = pod.trim();
        self.until("logs and exec", || {
            let log = self.kubectl(&["logs", pod])?;
            ensure!(log == format!("version {version}\n"), "the log is {log:?}");
            let said = self.kubectl(&["exec", pod, "--", "echo", "heard"])?;
            ensure!(said == "heard\n", "exec says {said:?}");
            Ok(())
        })
    }

    /// Deletes the DaemonSet. Returns when its pods have ended.
    pub(super) fn delete(&self) -> Result<()> {
        self.kubectl(&["delete", "daemonset", NODE])?;
        self.until("end of the pods", || {
            let left = self.containers()?;
            ensure!(left.is_empty(), "{left}");
            Ok(())
        })
    }

    /// Changes something, and compares the running containers before and after.
    pub(super) fn keeping_pods(
        &mut self,
        change: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let (before, renewed) = (self.containers()?, self.renewed());
        change(self)?;
        self.until("a renewed lease of the node", || {
            ensure!(self.renewed() != renewed, "the lease is not renewed");
            Ok(())
        })?;
        self.kubectl(&["rollout", "status", "daemonset/skew", "--timeout=60s"])?;
        let after = self.containers()?;
        ensure!(before == after, "before:\n{before}after:\n{after}");
        Ok(())
    }

    fn containers(&self) -> Result<String> {
        self.kubectl(&["get", "pods", "-l", "app=skew", "-o", CONTAINERS])
    }

    fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        self.kubectl_with(arguments, "")
    }

    fn kubectl_with(&self, arguments: &[&str], input: &str) -> Result<String> {
        let mut child = Command::new(&self.kubectl)
            .arg("--kubeconfig")
            .arg(self.file("server/admin.kubeconfig"))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut stdin = child.stdin.take().context("stdin was piped")?;
        stdin.write_all(input.as_bytes())?;
        drop(stdin);
        let output = child.wait_with_output()?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "kubectl {}: {}",
            arguments.join(" "),
            errors.trim()
        );
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Polls until it holds; fails with the last reason and the ends of the logs.
    fn until(&self, what: &str, holds: impl Fn() -> Result<()>) -> Result<()> {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            match holds() {
                Ok(()) => return Ok(()),
                Err(_) if Instant::now() < deadline => std::thread::sleep(POLL_INTERVAL),
                Err(error) => bail!("no {what} in time: {error:#}\n{}", self.log_ends()),
            }
        }
    }

    fn log_ends(&self) -> String {
        let end = |name: &str| {
            let log = fs::read_to_string(self.file(name)).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            let from = lines.len().saturating_sub(10);
            format!("{name}:\n{}\n", lines[from..].join("\n"))
        };
        end("server.log") + &end("agent.log")
    }
}

/// The options and the token in what `token create` prints. The token is an option or a variable, by version.
fn invitation(line: &str) -> Result<(Vec<String>, String)> {
    let mut words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let variable = words
        .iter()
        .find_map(|word| word.strip_prefix("KENNEL_TOKEN="));
    let mut token = variable.map(str::to_owned);
    if let Some(at) = words.iter().position(|word| word == "--token") {
        let end = words.len().min(at + 2);
        token = words.drain(at..end).nth(1);
    }
    let agent = words.iter().position(|word| word == "agent");
    let agent = agent.with_context(|| format!("no agent in {line:?}"))?;
    let token = token.with_context(|| format!("no token in {line:?}"))?;
    Ok((words.split_off(agent), token))
}

/// Ends a process as systemd does.
fn stop(process: Option<Child>) -> Result<()> {
    let mut process = process.context("it does not run")?;
    kill_process(Pid::from_child(&process), Signal::TERM)?;
    let deadline = Instant::now() + TIMEOUT;
    while process.try_wait()?.is_none() {
        ensure!(Instant::now() < deadline, "did not exit after SIGTERM");
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let running = [self.agent.take(), self.server.take()];
        for mut process in running.into_iter().flatten() {
            // It may have exited already.
            let _killed = process.kill();
            let _reaped = process.wait();
        }
        let _ended = Command::new(&self.cleaner)
            .args(["agent", "--cleanup", "--yes", "--data-dir"])
            .arg(self.file("agent"))
            .output();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_invitations_of_all_versions_are_understood() {
        let options = [
            "agent",
            "--server",
            "https://10.0.0.1:6443",
            "--ca-hash",
            "sha256:00",
        ];
        let options = options.map(str::to_owned).to_vec();
        for line in [
            "kennel agent --server https://10.0.0.1:6443 --token a.b --ca-hash sha256:00\n",
            "KENNEL_TOKEN=a.b kennel agent --server https://10.0.0.1:6443 --ca-hash sha256:00\n",
        ] {
            let found = invitation(line).unwrap();
            assert_eq!(found, (options.clone(), "a.b".to_owned()));
        }
    }
}
