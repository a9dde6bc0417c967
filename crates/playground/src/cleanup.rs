//! Removes a playground: at its end, and at the next start if it was killed. Works only from what is on disk, so that
//! both cases are the same, and can be repeated if it is interrupted.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use kennel_node::mountinfo;
use kennel_node::runtime::process::{Options, Process};
use kennel_node::runtime::{Found, Runtime as _};
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::timeout;

use super::journal::{Journal, LockedDirectory};
use super::network;
use kennel_agent::node::own_binary;

/// Time for a pod's processes to exit after SIGTERM.
const GRACE_PERIOD: Duration = Duration::from_secs(2);
/// Time for all pods to stop, including those that are killed.
const PODS_TIMEOUT: Duration = Duration::from_secs(20);
/// Time for shims to exit after their containers, before they are killed.
const SHIMS_TIMEOUT: Duration = Duration::from_secs(3);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// In order.
const STEPS: [&str; 4] = ["pods", "mounts", "networks", "files"];

/// A cleanup with observable progress: the number of completed steps.
#[derive(Default)]
pub(super) struct Cleanup(AtomicUsize);

impl Cleanup {
    /// The steps that are not complete.
    pub(super) fn remaining(&self) -> String {
        STEPS[self.0.load(Ordering::Relaxed).min(STEPS.len() - 1)..].join(", ")
    }

    /// Removes everything but the directory itself; returns what could not be removed.
    pub(super) async fn run(
        &self,
        data: &Path,
        directory: &LockedDirectory,
        journal: &Journal,
    ) -> Vec<String> {
        let mut failures = stop_pods(data).await;
        self.0.store(1, Ordering::Relaxed);
        failures.extend(unmount_below(data));
        self.0.store(2, Ordering::Relaxed);
        failures.extend(network::remove(journal));
        self.0.store(3, Ordering::Relaxed);
        // After a failure the next playground needs the journal.
        if failures.is_empty()
            && let Err(error) = directory.empty()
        {
            failures.push(format!("files in {}: {error}", data.display()));
        }
        failures
    }
}

/// Stops the pods of all nodes, and their shims.
async fn stop_pods(data: &Path) -> Vec<String> {
    let nodes = std::fs::read_dir(data.join("nodes")).into_iter().flatten();
    let nodes = nodes.flatten().map(|node| node.path());
    let stops = nodes
        .filter(|node| node.join("process").exists())
        .map(stop_node);
    let stopped = timeout(PODS_TIMEOUT, join_all(stops)).await;
    let mut failures = stop_shims(data).await;
    // The runtimes are dropped after their shims have exited: only then do they remove their cgroups.
    match stopped {
        Ok(stopped) => failures.extend(stopped.into_iter().filter_map(|(_, failure)| failure)),
        Err(_) => failures.push(format!(
            "pods in {}: not stopped within {PODS_TIMEOUT:?}",
            data.display()
        )),
    }
    failures
}

async fn stop_node(dir: PathBuf) -> (Option<Process>, Option<String>) {
    let open = || {
        let shim = own_binary()?;
        let data = dir.clone();
        anyhow::Ok(Process::open(Options { data, shim })?)
    };
    let failure =
        |error: &dyn std::fmt::Display| Some(format!("pods in {}: {error}", dir.display()));
    let runtime = match open() {
        Ok(runtime) => runtime,
        Err(error) => return (None, failure(&error)),
    };
    let pods = match runtime.list().await {
        Ok(pods) => pods,
        Err(error) => return (Some(runtime), failure(&error)),
    };
    let stopped = join_all(pods.iter().map(|pod| stop_pod(&runtime, pod))).await;
    let error = stopped.into_iter().find_map(Result::err);
    let failure = error.and_then(|error| failure(&error));
    (Some(runtime), failure)
}

async fn stop_pod(runtime: &Process, pod: &Found) -> kennel_node::runtime::Result<()> {
    let runs = pod.observed.runs.iter();
    let stops = runs.map(|run| runtime.stop(&run.id, GRACE_PERIOD));
    // Removing the sandbox kills what did not stop.
    let _results = join_all(stops).await;
    let newest = pod.observed.sandbox.iter().map(|sandbox| &sandbox.id);
    for sandbox in pod.stale.iter().chain(newest) {
        runtime.remove_sandbox(sandbox).await?;
    }
    Ok(())
}

/// Waits for the shims to exit, and kills the rest.
async fn stop_shims(data: &Path) -> Vec<String> {
    for kill in [false, true] {
        let started_at = Instant::now();
        while started_at.elapsed() < SHIMS_TIMEOUT {
            let alive = shims(data);
            if alive.is_empty() {
                return Vec::new();
            }
            if kill {
                for pid in alive {
                    let _exited = kill_process(pid, Signal::KILL);
                }
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
    let alive = shims(data).into_iter();
    alive
        .map(|pid| format!("process {}", pid.as_raw_nonzero()))
        .collect()
}

/// Processes whose executable is in our directory; only shims are.
fn shims(data: &Path) -> Vec<Pid> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let ours = processes.filter_map(|process| {
        let pid = process.file_name().to_str()?.parse().ok()?;
        let program = std::fs::read_link(process.path().join("exe")).ok()?;
        program.starts_with(data).then(|| Pid::from_raw(pid))?
    });
    ours.collect()
}

/// Unmounts everything in a directory; returns what is still mounted.
fn unmount_below(data: &Path) -> Vec<String> {
    for point in mounts_below(data).iter().rev() {
        let _checked_below = unmount(point, UnmountFlags::DETACH);
    }
    let remaining = mounts_below(data).into_iter();
    remaining
        .map(|point| format!("mount {}", point.display()))
        .collect()
}

fn mounts_below(data: &Path) -> Vec<PathBuf> {
    mountinfo::below(data).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completed_steps_are_not_remaining() {
        let cleanup = Cleanup::default();
        assert_eq!(cleanup.remaining(), "pods, mounts, networks, files");
        cleanup.0.store(2, Ordering::Relaxed);
        assert_eq!(cleanup.remaining(), "networks, files");
    }
}
