//! Log rotation: renames logs that exceed a size, and removes the oldest rotated files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kennel_client::clock;
use kennel_types::Timestamp;
use tokio_util::sync::CancellationToken;

use super::files::{log_path, rotated_files};
use crate::agent::Paths;
use crate::files::if_found;
use crate::pods::PodCache;
use crate::runtime::Runtime;

/// A log of this size is rotated.
pub(in crate::kubelet_api) const LOG_BYTES_MAX: u64 = 10 << 20;
/// Files per run, including the current one.
pub(in crate::kubelet_api) const FILES_MAX: usize = 5;
const CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// Rotates the logs of all running containers until `stop` is cancelled.
pub async fn rotate(
    runtime: Arc<dyn Runtime>,
    pod_cache: Arc<PodCache>,
    paths: Paths,
    stop: CancellationToken,
) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(CHECK_INTERVAL) => {}
            () = stop.cancelled() => return,
        }
        for (id, log) in running_logs(&pod_cache, &paths) {
            if let Err(error) = rotate_if_large(&*runtime, &id, &log, LOG_BYTES_MAX).await {
                tracing::warn!("rotating the log {} failed: {error}", log.display());
            }
        }
    }
}

/// The ids of running containers, and their current log files.
fn running_logs(pod_cache: &PodCache, paths: &Paths) -> Vec<(String, PathBuf)> {
    let pods = pod_cache.all();
    let runs = pods.iter().flat_map(|cached| {
        let pod = &cached.pod.id;
        let runs = cached.observed.running();
        runs.map(|run| (run.id.clone(), log_path(paths, pod, &run.name, run.attempt)))
    });
    runs.collect()
}

async fn rotate_if_large(
    runtime: &dyn Runtime,
    id: &str,
    log: &Path,
    max: u64,
) -> Result<(), RotateError> {
    let Some(metadata) = if_found(fs::metadata(log))? else {
        // Renamed earlier, but the runtime did not reopen it: ask again.
        return Ok(runtime.reopen_log(id).await?);
    };
    if metadata.len() < max {
        return Ok(());
    }
    let old = rotated_files(log)?;
    // The file that is renamed now and the new one add two.
    for file in &old[..(old.len() + 2).saturating_sub(FILES_MAX)] {
        fs::remove_file(file)?;
    }
    let rotated = rotated_name(log, clock::now());
    fs::rename(log, &rotated)?;
    if let Err(error) = runtime.reopen_log(id).await {
        // The runtime keeps writing to the renamed file: undo the rename, so that readers find it.
        if !log.exists() {
            fs::rename(&rotated, log)?;
        }
        return Err(error.into());
    }
    Ok(())
}

#[derive(Debug, thiserror::Error)]
enum RotateError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Runtime(#[from] crate::runtime::Error),
}

/// The name of a rotated log: `0.log.20260102-030405`.
fn rotated_name(log: &Path, now: Timestamp) -> PathBuf {
    let time = now.to_string();
    let digits = time.replace(['-', ':', 'Z'], "").replace('T', "-");
    let mut name = log.as_os_str().to_owned();
    name.push(format!(".{digits}"));
    name.into()
}

#[cfg(test)]
mod tests;
