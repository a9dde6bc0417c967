//! The links that log collectors follow, and what becomes of logs in the end.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::agent::Paths;
use crate::runtime::PodId;

/// How long the name of a file may be, without `.log`.
const NAME_BYTES_MAX: usize = 251;

/// Makes the link to the log of a run. Fine if it is there.
pub fn link(paths: &Paths, pod: &PodId, container: &str, attempt: u32, id: &str) -> io::Result<()> {
    let (link, log) = (
        place(paths, pod, container, id),
        log(paths, pod, container, attempt),
    );
    if fs::read_link(&link).is_ok_and(|target| target == log) {
        return Ok(());
    }
    fs::create_dir_all(paths.log_links())?;
    fine_if_gone(fs::remove_file(&link))?;
    std::os::unix::fs::symlink(log, link)
}

/// Takes away the log of a run that was removed, what was cut off it, and its link.
pub fn forget(
    paths: &Paths,
    pod: &PodId,
    container: &str,
    attempt: u32,
    id: &str,
) -> io::Result<()> {
    fine_if_gone(fs::remove_file(place(paths, pod, container, id)))?;
    let log = log(paths, pod, container, attempt);
    for old in cut_off(&log)? {
        fine_if_gone(fs::remove_file(old))?;
    }
    fine_if_gone(fs::remove_file(log))
}

/// Takes away all logs of a pod, and the links to them.
pub fn remove(paths: &Paths, pod: &PodId) -> io::Result<()> {
    let logs = paths.pod_logs(pod);
    let links = match fs::read_dir(paths.log_links()) {
        Ok(links) => links,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return fine_if_gone(fs::remove_dir_all(logs));
        }
        Err(error) => return Err(error),
    };
    for link in links {
        let link = link?.path();
        if fs::read_link(&link).is_ok_and(|target| target.starts_with(&logs)) {
            fine_if_gone(fs::remove_file(link))?;
        }
    }
    fine_if_gone(fs::remove_dir_all(logs))
}

/// The files that were cut off a log, the oldest first.
pub(super) fn cut_off(log: &Path) -> io::Result<Vec<PathBuf>> {
    let (Some(dir), Some(name)) = (log.parent(), log.file_name()) else {
        return Ok(Vec::new());
    };
    let prefix = format!("{}.", name.to_string_lossy());
    let files = match fs::read_dir(dir) {
        Ok(files) => files,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for file in files {
        let file = file?;
        if file.file_name().to_string_lossy().starts_with(&prefix) {
            found.push(file.path());
        }
    }
    // Their names end with the time.
    found.sort();
    Ok(found)
}

/// The log of a run.
pub(in crate::look) fn log(paths: &Paths, pod: &PodId, container: &str, attempt: u32) -> PathBuf {
    paths.pod_logs(pod).join(Paths::log(container, attempt))
}

fn place(paths: &Paths, pod: &PodId, container: &str, id: &str) -> PathBuf {
    let mut name = format!("{}_{}_{container}-{id}", pod.name, pod.namespace);
    name.truncate(NAME_BYTES_MAX);
    paths.log_links().join(name + ".log")
}

fn fine_if_gone(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod() -> PodId {
        PodId {
            namespace: "ns".to_owned(),
            name: "p".to_owned(),
            uid: "u".to_owned(),
        }
    }

    fn paths() -> (tempfile::TempDir, Paths) {
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths {
            data: dir.path().join("data"),
            logs: dir.path().join("log"),
        };
        (dir, paths)
    }

    fn write(paths: &Paths, name: &str) -> PathBuf {
        let file = paths.pod_logs(&pod()).join("c").join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, name).unwrap();
        file
    }

    #[test]
    fn a_collector_finds_the_log_by_its_link() {
        let (_dir, paths) = paths();
        write(&paths, "0.log");
        for _ in 0..2 {
            link(&paths, &pod(), "c", 0, "abc").unwrap();
        }
        let found = paths.log_links().join("p_ns_c-abc.log");
        assert_eq!(fs::read_to_string(found).unwrap(), "0.log");
    }

    #[test]
    fn a_run_takes_its_log_along_and_no_other() {
        let (_dir, paths) = paths();
        let kept = [write(&paths, "1.log"), write(&paths, "10.log")];
        let gone = [
            write(&paths, "0.log"),
            write(&paths, "0.log.20260101-000000"),
        ];
        link(&paths, &pod(), "c", 0, "abc").unwrap();
        link(&paths, &pod(), "c", 1, "def").unwrap();
        forget(&paths, &pod(), "c", 0, "abc").unwrap();
        assert!(gone.iter().all(|file| !file.exists()));
        assert!(kept.iter().all(|file| file.exists()));
        assert_eq!(fs::read_dir(paths.log_links()).unwrap().count(), 1);
        forget(&paths, &pod(), "c", 0, "abc").unwrap();
    }

    #[test]
    fn a_pod_takes_all_its_logs_along() {
        let (_dir, paths) = paths();
        remove(&paths, &pod()).unwrap();
        write(&paths, "0.log");
        link(&paths, &pod(), "c", 0, "abc").unwrap();
        let mut other = pod();
        other.uid = "v".to_owned();
        link(&paths, &other, "c", 0, "xyz").unwrap();
        remove(&paths, &pod()).unwrap();
        assert!(!paths.pod_logs(&pod()).exists());
        assert_eq!(fs::read_dir(paths.log_links()).unwrap().count(), 1);
    }

    #[test]
    fn long_names_are_cut() {
        let (_dir, paths) = paths();
        let mut long = pod();
        long.name = "x".repeat(250);
        link(&paths, &long, "c", 0, "abc").unwrap();
    }
}
