//! Finds and removes the logs of pods, and the links to them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::Failure;
use crate::agent::Paths;
use crate::files::if_found;

/// The log directories of these pods. Other pods' logs may be beside them.
pub(super) fn find(log_dirs: &BTreeSet<PathBuf>, uids: &BTreeSet<String>) -> Vec<PathBuf> {
    let of_pods = |dir: &PathBuf| {
        // `<namespace>_<name>_<uid>`; uids contain no underscore.
        let name = dir.file_name().unwrap_or_default().to_string_lossy();
        let uid = name.rsplit_once('_').map(|(_, uid)| uid.to_owned());
        uid.is_some_and(|uid| uids.contains(&uid))
    };
    let all = log_dirs
        .iter()
        .flat_map(|dir| entries(&Paths::all_pod_logs(dir)));
    all.filter(of_pods).collect()
}

/// Removes log directories and the links to them, and the directories of all logs if they are empty then.
pub(super) fn remove(log_dirs: &BTreeSet<PathBuf>, found: &[PathBuf]) -> Vec<Failure> {
    let mut failures = Vec::new();
    let mut check = |path: &Path, result: std::io::Result<()>| {
        if let Err(error) = if_found(result) {
            failures.push(Failure::new(format!("{}", path.display()), &error));
        }
    };
    for dir in log_dirs {
        for link in entries(&Paths::all_log_links(dir)) {
            let target = std::fs::read_link(&link).unwrap_or_default();
            if found.iter().any(|logs| target.starts_with(logs)) {
                check(&link, std::fs::remove_file(&link));
            }
        }
    }
    for logs in found {
        check(logs, std::fs::remove_dir_all(logs));
    }
    for dir in log_dirs {
        for dir in [Paths::all_pod_logs(dir), Paths::all_log_links(dir)] {
            let _in_use = std::fs::remove_dir(dir);
        }
    }
    failures
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn logs_of_other_pods_stay() {
        let dir = tempfile::tempdir().unwrap();
        let (pods, links) = (dir.path().join("pods"), dir.path().join("containers"));
        std::fs::create_dir_all(&links).unwrap();
        for name in ["default_web-1_u-1", "default_web-2_u-2", "u-1"] {
            std::fs::create_dir_all(pods.join(name).join("app")).unwrap();
            symlink(pods.join(name).join("app/0.log"), links.join(name)).unwrap();
        }
        let log_dirs = BTreeSet::from([dir.path().to_owned()]);
        let found = find(&log_dirs, &BTreeSet::from(["u-1".to_owned()]));
        assert_eq!(found, [pods.join("default_web-1_u-1")]);
        assert_eq!(remove(&log_dirs, &found), []);
        let left = |dir: &Path| {
            let mut left = entries(dir);
            left.sort();
            left
        };
        assert_eq!(
            left(&pods),
            ["default_web-2_u-2", "u-1"].map(|name| pods.join(name))
        );
        assert_eq!(
            left(&links),
            ["default_web-2_u-2", "u-1"].map(|name| links.join(name))
        );
        let others = BTreeSet::from(["u-2".to_owned()]);
        std::fs::remove_dir_all(pods.join("u-1")).unwrap();
        std::fs::remove_file(links.join("u-1")).unwrap();
        assert_eq!(remove(&log_dirs, &find(&log_dirs, &others)), []);
        assert_eq!(
            left(dir.path()),
            Vec::<PathBuf>::new(),
            "empty directories are removed"
        );
    }
}
