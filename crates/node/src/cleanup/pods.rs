//! Ends pods in a runtime.

use std::time::Duration;

use futures_util::future::join_all;
use kennel_core::pod::State;

use super::Failure;
use crate::runtime::{Found, Result, Runtime};

/// Stops all containers of the pods at the same time, and removes their sandboxes. Containers that do not exit within
/// the grace period are killed.
pub async fn end_pods(runtime: &dyn Runtime, pods: &[Found], grace: Duration) -> Vec<Failure> {
    let ended = join_all(pods.iter().map(|pod| end_pod(runtime, pod, grace))).await;
    let results = pods.iter().zip(ended);
    let failed = results.filter_map(|(found, result)| {
        let pod = &found.pod;
        let what = format!("pod {}/{}", pod.namespace, pod.name);
        result.err().map(|error| Failure::new(what, &error))
    });
    failed.collect()
}

async fn end_pod(runtime: &dyn Runtime, pod: &Found, grace: Duration) -> Result<()> {
    let runs = pod.observed.runs.iter();
    let running = runs.filter(|run| !matches!(run.state, State::Exited(_)));
    let stops = running.map(|run| runtime.stop(&run.id, grace));
    // Stopping the sandbox kills what did not stop.
    let _results = join_all(stops).await;
    let newest = pod.observed.sandbox.iter().map(|sandbox| &sandbox.id);
    for sandbox in pod.stale.iter().chain(newest) {
        runtime.stop_sandbox(sandbox).await?;
        runtime.remove_sandbox(sandbox).await?;
    }
    Ok(())
}
