//! Removes a playground: at its end, and at the next start if it was killed. Works only from what is on disk, so that
//! both cases are the same, and can be repeated if it is interrupted.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use kennel_node::cleanup::{end_pods, end_shims, unmount_below};
use kennel_node::runtime::Runtime as _;
use kennel_node::runtime::process::{Options, Process};
use tokio::time::timeout;

use super::journal::{Journal, LockedDirectory};
use super::network;
use kennel_agent::node::own_binary;

/// Time for a pod's processes to exit after SIGTERM.
const GRACE_PERIOD: Duration = Duration::from_secs(2);
/// Time for all pods to stop, including those that are killed.
const PODS_TIMEOUT: Duration = Duration::from_secs(20);
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
        failures.extend(unmount_below(data).iter().map(ToString::to_string));
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
    let nodes: Vec<PathBuf> = nodes.filter(|node| node.join("process").exists()).collect();
    let stopped = timeout(
        PODS_TIMEOUT,
        join_all(nodes.iter().map(|node| stop_node(node))),
    )
    .await;
    let shims = join_all(nodes.iter().map(|node| end_shims(node))).await;
    let mut failures: Vec<String> = shims.iter().flatten().map(ToString::to_string).collect();
    // The runtimes are dropped after their shims have exited: only then do they remove their cgroups.
    match stopped {
        Ok(stopped) => failures.extend(stopped.into_iter().flat_map(|(_, failures)| failures)),
        Err(_) => failures.push(format!(
            "pods in {}: not stopped within {PODS_TIMEOUT:?}",
            data.display()
        )),
    }
    failures
}

async fn stop_node(dir: &Path) -> (Option<Process>, Vec<String>) {
    let open = || {
        let shim = own_binary()?;
        let data = dir.to_owned();
        anyhow::Ok(Process::open(Options { data, shim })?)
    };
    let failure =
        |error: &dyn std::fmt::Display| vec![format!("pods in {}: {error}", dir.display())];
    let runtime = match open() {
        Ok(runtime) => runtime,
        Err(error) => return (None, failure(&error)),
    };
    let failures = match runtime.list().await {
        Ok(pods) => end_pods(&runtime, &pods, GRACE_PERIOD).await,
        Err(error) => return (Some(runtime), failure(&error)),
    };
    (
        Some(runtime),
        failures.iter().map(ToString::to_string).collect(),
    )
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
