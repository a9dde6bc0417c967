//! Keeps logs short: one that has grown long is put aside, and of those the oldest go.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::files::{cut_off, log};
use crate::agent::Paths;
use crate::pods::PodCache;
use crate::runtime::Runtime;

/// How long a log may be before it is cut.
const LOG_BYTES_MAX: u64 = 10 << 20;
/// How many files a run may have, the one it writes to among them.
const FILES_MAX: usize = 5;
/// How often they are measured.
const MEASURE_EVERY: Duration = Duration::from_secs(10);

/// Keeps the logs of all running containers short until told to stop.
pub async fn rotate(
    runtime: Arc<dyn Runtime>,
    directory: Arc<PodCache>,
    paths: Paths,
    stop: CancellationToken,
) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(MEASURE_EVERY) => {}
            () = stop.cancelled() => return,
        }
        for (id, log) in running(&directory, &paths) {
            if let Err(error) = cut(&*runtime, &id, &log, LOG_BYTES_MAX).await {
                tracing::warn!("the log {} cannot be cut: {error}", log.display());
            }
        }
    }
}

/// The runs that write, and where to.
fn running(directory: &PodCache, paths: &Paths) -> Vec<(String, PathBuf)> {
    let views = directory.all();
    let runs = views.iter().flat_map(|view| {
        let pod = &view.pod.id;
        let runs = view.observed.alive();
        runs.map(|run| (run.id.clone(), log(paths, pod, &run.name, run.attempt)))
    });
    runs.collect()
}

/// Cuts a log that is longer than it may be.
async fn cut(runtime: &dyn Runtime, id: &str, log: &Path, max: u64) -> Result<(), CutError> {
    let length = match fs::metadata(log) {
        Ok(metadata) => metadata.len(),
        // Put aside before, and the runtime did not go on: it is told again.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(runtime.reopen_log(id).await?);
        }
        Err(error) => return Err(error.into()),
    };
    if length < max {
        return Ok(());
    }
    let old = cut_off(log)?;
    // This one and the next one make two.
    for file in &old[..(old.len() + 2).saturating_sub(FILES_MAX)] {
        fs::remove_file(file)?;
    }
    let aside = aside(log, Timestamp::now());
    fs::rename(log, &aside)?;
    if let Err(error) = runtime.reopen_log(id).await {
        // It goes on writing to the file it has: under its name, so that it is read.
        if !log.exists() {
            fs::rename(&aside, log)?;
        }
        return Err(error.into());
    }
    Ok(())
}

#[derive(Debug, thiserror::Error)]
enum CutError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Runtime(#[from] crate::runtime::Error),
}

/// Where a log is put aside: `0.log.20260102-030405`.
fn aside(log: &Path, now: Timestamp) -> PathBuf {
    let digits = now.strftime("%Y%m%d-%H%M%S");
    let mut name = log.as_os_str().to_owned();
    name.push(format!(".{digits}"));
    name.into()
}

#[cfg(test)]
mod tests;
