//! Links log collectors to container logs, and removes logs and links with their container or pod. The runtime
//! writes the logs; the kubelet API reads them.

use std::io;
use std::path::{Path, PathBuf};

use kennel_core::pod::Run;

use crate::agent::Paths;
use crate::files::if_found;
use crate::runtime::PodId;

/// Without `.log`. File systems allow names of 255 bytes.
const LINK_NAME_MAX_BYTES: usize = 251;

/// `<pod>_<namespace>_<container>-<id>.log`: log collectors parse this name.
fn link_path(paths: &Paths, pod: &PodId, container: &str, id: &str) -> PathBuf {
    let mut name = format!("{}_{}_{container}-{id}", pod.name, pod.namespace);
    name.truncate(LINK_NAME_MAX_BYTES);
    paths.log_links().join(name + ".log")
}

/// Links the log of a run for log collectors. Does nothing if there is no log yet.
pub(super) fn link(paths: &Paths, pod: &PodId, run: &Run) -> io::Result<()> {
    let log = paths.pod_logs(pod).join(Paths::log(&run.name, run.attempt));
    let link = link_path(paths, pod, &run.name, &run.id);
    if !log.exists() || link.symlink_metadata().is_ok() {
        return Ok(());
    }
    std::fs::create_dir_all(paths.log_links())?;
    std::os::unix::fs::symlink(log, link)
}

/// Removes the log of a removed run, its rotated files and the link to it.
pub(super) fn remove(paths: &Paths, pod: &PodId, run: &Run) -> io::Result<()> {
    if_found(std::fs::remove_file(link_path(
        paths, pod, &run.name, &run.id,
    )))?;
    let log = paths.pod_logs(pod).join(Paths::log(&run.name, run.attempt));
    let (Some(dir), Some(name)) = (log.parent(), log.file_name()) else {
        return Ok(());
    };
    let name = name.to_string_lossy();
    for file in files(dir)? {
        let own = file.file_name().is_some_and(|file| {
            let file = file.to_string_lossy();
            file == name || file.starts_with(&format!("{name}."))
        });
        if own {
            if_found(std::fs::remove_file(file))?;
        }
    }
    Ok(())
}

/// Removes all logs of a pod, and the links to them.
pub(super) fn remove_all(paths: &Paths, pod: &PodId) -> io::Result<()> {
    let logs = paths.pod_logs(pod);
    for link in files(&paths.log_links())? {
        let target = std::fs::read_link(&link);
        if target.is_ok_and(|target| target.starts_with(&logs)) {
            if_found(std::fs::remove_file(link))?;
        }
    }
    if_found(std::fs::remove_dir_all(logs)).map(drop)
}

fn files(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = if_found(std::fs::read_dir(dir))?.into_iter().flatten();
    entries.map(|entry| Ok(entry?.path())).collect()
}

#[cfg(test)]
mod tests {
    use kennel_core::pod::State;
    use tempfile::TempDir;

    use super::*;

    fn run(attempt: u32) -> Run {
        Run {
            name: "app".to_owned(),
            id: format!("id{attempt}"),
            attempt,
            sandbox: String::new(),
            image: String::new(),
            image_id: String::new(),
            state: State::Created,
        }
    }

    #[test]
    fn logs_are_linked_and_removed_with_their_links() {
        let dir = TempDir::new().unwrap();
        let paths = Paths {
            data: dir.path().join("data"),
            logs: dir.path().join("logs"),
        };
        let pod = PodId {
            namespace: "ns".to_owned(),
            name: "web".to_owned(),
            uid: "u".to_owned(),
        };
        let logs = paths.pod_logs(&pod).join("app");
        std::fs::create_dir_all(&logs).unwrap();
        for name in ["0.log", "0.log.20260102-030405", "1.log", "10.log"] {
            std::fs::write(logs.join(name), name).unwrap();
        }
        for attempt in [0, 1, 1, 7] {
            link(&paths, &pod, &run(attempt)).unwrap();
        }
        let names = |dir: &Path| {
            let mut names: Vec<String> = files(dir)
                .unwrap()
                .iter()
                .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
                .collect();
            names.sort();
            names
        };
        let links = paths.log_links();
        let first = "web_ns_app-id0.log";
        assert_eq!(names(&links), [first, "web_ns_app-id1.log"]);
        assert_eq!(std::fs::read_to_string(links.join(first)).unwrap(), "0.log");
        remove(&paths, &pod, &run(0)).unwrap();
        assert_eq!(names(&links), ["web_ns_app-id1.log"]);
        assert_eq!(names(&logs), ["1.log", "10.log"]);
        remove_all(&paths, &pod).unwrap();
        remove_all(&paths, &pod).unwrap();
        assert!(names(&links).is_empty() && !logs.exists());
    }
}
