//! The files of a container's log.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::agent::Paths;
use crate::files::if_found;
use crate::runtime::PodId;

/// The rotated files of a log, the oldest first.
pub(super) fn rotated_files(log: &Path) -> io::Result<Vec<PathBuf>> {
    let (Some(dir), Some(name)) = (log.parent(), log.file_name()) else {
        return Ok(Vec::new());
    };
    let prefix = format!("{}.", name.to_string_lossy());
    let mut found = Vec::new();
    for file in if_found(fs::read_dir(dir))?.into_iter().flatten() {
        let file = file?;
        if file.file_name().to_string_lossy().starts_with(&prefix) {
            found.push(file.path());
        }
    }
    // Their names end with the time of rotation.
    found.sort();
    Ok(found)
}

/// The current log file of a run.
pub(in crate::kubelet_api) fn log_path(
    paths: &Paths,
    pod: &PodId,
    container: &str,
    attempt: u32,
) -> PathBuf {
    paths.pod_logs(pod).join(Paths::log(container, attempt))
}
