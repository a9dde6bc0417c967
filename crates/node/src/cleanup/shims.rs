//! Ends the shims of the process runtime, which exit by themselves after their containers.

use std::path::Path;
use std::time::{Duration, Instant};

use kennel_shim::identity;
use rustix::process::{Pid, Signal, kill_process};

use super::Failure;
use crate::runtime::process;

/// Time for shims to exit after their containers, before they are killed; and for killed ones to exit.
const TIMEOUT: Duration = Duration::from_secs(3);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Waits for the shims of a data directory to exit, and kills the rest with their containers. Returns those that still
/// run.
pub async fn end_shims(data: &Path) -> Vec<Failure> {
    for kill in [false, true] {
        let started_at = Instant::now();
        while started_at.elapsed() < TIMEOUT {
            let alive = shims(data);
            if alive.is_empty() {
                return Vec::new();
            }
            if kill {
                alive.into_iter().for_each(kill_with_descendants);
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
    let alive = shims(data).into_iter();
    alive
        .map(|pid| Failure::new(format!("process {pid}"), &"it was killed and still runs"))
        .collect()
}

fn kill_with_descendants(pid: i32) {
    let all = identity::descendants(pid).into_iter().chain([pid]);
    for pid in all.filter_map(Pid::from_raw) {
        let _exited = kill_process(pid, Signal::KILL);
    }
}

/// Processes whose executable is in the directory of the process runtime; only shims are.
fn shims(data: &Path) -> Vec<i32> {
    let Ok(programs) = process::directory(data).canonicalize() else {
        return Vec::new();
    };
    let is_shim = |pid: &i32| {
        let program = std::fs::read_link(format!("/proc/{pid}/exe"));
        program.is_ok_and(|program| program.starts_with(&programs))
    };
    identity::all().into_iter().filter(is_shim).collect()
}
