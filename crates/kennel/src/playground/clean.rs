//! Takes a playground away: at its end, and at the next start after one that was killed. It trusts nothing but what is
//! on disk, so that both are the same, and it can be begun again wherever it was cut off.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use kennel_node::runtime::process::{Options, Process};
use kennel_node::runtime::{Found, Runtime as _};
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::timeout;

use super::ledger::{Claim, Ledger};
use super::network;
use kennel_agent::node::own_binary;

/// What a pod's processes get to end by themselves.
const GRACE: Duration = Duration::from_secs(2);
/// What all pods together get, killed ones included.
const PODS: Duration = Duration::from_secs(20);
/// What shims get to end after their containers, before they are killed.
const SHIMS: Duration = Duration::from_secs(3);
/// Between two looks at something that ends without telling.
const MOMENT: Duration = Duration::from_millis(20);

/// What is done, in order.
const STEPS: [&str; 4] = ["pods", "mounts", "networks", "files"];

/// A clean-up that others can ask how far it is.
#[derive(Default)]
pub(super) struct Cleaning(AtomicUsize);

impl Cleaning {
    /// What is still to be done.
    pub(super) fn to_do(&self) -> String {
        STEPS[self.0.load(Ordering::Relaxed).min(STEPS.len() - 1)..].join(", ")
    }

    /// Takes everything away but the directory itself; returns what could not be.
    pub(super) async fn run(&self, data: &Path, claim: &Claim, ledger: &Ledger) -> Vec<String> {
        let mut left = end_pods(data).await;
        self.0.store(1, Ordering::Relaxed);
        left.extend(unmount_below(data));
        self.0.store(2, Ordering::Relaxed);
        left.extend(network::remove(ledger));
        self.0.store(3, Ordering::Relaxed);
        // Whoever looks for what is left needs the notes.
        if left.is_empty()
            && let Err(error) = claim.empty()
        {
            left.push(format!("files in {}: {error}", data.display()));
        }
        left
    }
}

/// Ends all pods of all nodes, and what kept them.
async fn end_pods(data: &Path) -> Vec<String> {
    let nodes = std::fs::read_dir(data.join("nodes")).into_iter().flatten();
    let nodes = nodes.flatten().map(|node| node.path());
    let ends = nodes
        .filter(|node| node.join("process").exists())
        .map(end_node);
    let ended = timeout(PODS, join_all(ends)).await;
    let mut left = end_shims(data).await;
    // Only now: without its shims, a runtime leaves no empty groups behind.
    match ended {
        Ok(ended) => left.extend(ended.into_iter().filter_map(|(_, problem)| problem)),
        Err(_) => left.push(format!("pods below {}: they do not end", data.display())),
    }
    left
}

async fn end_node(dir: PathBuf) -> (Option<Process>, Option<String>) {
    let open = || {
        let shim = own_binary()?;
        let data = dir.clone();
        anyhow::Ok(Process::open(Options { data, shim })?)
    };
    let problem =
        |error: &dyn std::fmt::Display| Some(format!("pods in {}: {error}", dir.display()));
    let runtime = match open() {
        Ok(runtime) => runtime,
        Err(error) => return (None, problem(&error)),
    };
    let pods = match runtime.list().await {
        Ok(pods) => pods,
        Err(error) => return (Some(runtime), problem(&error)),
    };
    let ends = join_all(pods.iter().map(|pod| end_pod(&runtime, pod))).await;
    let failed = ends.into_iter().find_map(Result::err);
    let problem = failed.and_then(|error| problem(&error));
    (Some(runtime), problem)
}

async fn end_pod(runtime: &Process, pod: &Found) -> kennel_node::runtime::Result<()> {
    let runs = pod.observed.runs.iter();
    let stops = runs.map(|run| runtime.stop(&run.id, GRACE));
    // Who does not end when asked is killed with the sandbox.
    let _asked = join_all(stops).await;
    let newest = pod.observed.sandbox.iter().map(|sandbox| &sandbox.id);
    for sandbox in pod.stale.iter().chain(newest) {
        runtime.remove_sandbox(sandbox).await?;
    }
    Ok(())
}

/// Waits for the ends of shims, and kills those that stay.
async fn end_shims(data: &Path) -> Vec<String> {
    for last in [false, true] {
        let began = Instant::now();
        while began.elapsed() < SHIMS {
            let alive = shims(data);
            if alive.is_empty() {
                return Vec::new();
            }
            if last {
                for pid in alive {
                    let _gone = kill_process(pid, Signal::KILL);
                }
            }
            tokio::time::sleep(MOMENT).await;
        }
    }
    let alive = shims(data).into_iter();
    alive
        .map(|pid| format!("process {}", pid.as_raw_nonzero()))
        .collect()
}

/// Processes whose program is in our directory: shims, and nobody else.
fn shims(data: &Path) -> Vec<Pid> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let ours = processes.filter_map(|process| {
        let pid = process.file_name().to_str()?.parse().ok()?;
        let program = std::fs::read_link(process.path().join("exe")).ok()?;
        program.starts_with(data).then(|| Pid::from_raw(pid))?
    });
    ours.collect()
}

/// Takes away what is mounted below a directory; returns what stays.
fn unmount_below(data: &Path) -> Vec<String> {
    for point in mounts_below(data).iter().rev() {
        let _told_below = unmount(point, UnmountFlags::DETACH);
    }
    let stay = mounts_below(data).into_iter();
    stay.map(|point| format!("mount {}", point.display()))
        .collect()
}

fn mounts_below(data: &Path) -> Vec<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let points = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    let points = points.map(|point| PathBuf::from(plain(point)));
    points.filter(|point| point.starts_with(data)).collect()
}

/// Spaces and the like are written as numbers there.
fn plain(point: &str) -> String {
    let escapes = [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ];
    let replace = |text: String, (from, to): (&str, &str)| text.replace(from, to);
    escapes.into_iter().fold(point.to_owned(), replace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_of_mounts_are_read_as_the_kernel_writes_them() {
        assert_eq!(plain("/a\\040b\\134c"), "/a b\\c");
        let found = mounts_below(Path::new("/proc/"));
        assert_eq!(found.first(), Some(&PathBuf::from("/proc")));
        assert!(found.iter().all(|point| point.starts_with("/proc")));
    }

    #[test]
    fn what_is_to_be_done_gets_less() {
        let cleaning = Cleaning::default();
        assert_eq!(cleaning.to_do(), "pods, mounts, networks, files");
        cleaning.0.store(2, Ordering::Relaxed);
        assert_eq!(cleaning.to_do(), "networks, files");
    }
}
