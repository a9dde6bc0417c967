//! The control groups of pods: what a runtime is told of them, and what it leaves behind.
//!
//! Runtimes make the group of a pod when they make its first container, and take away those of containers
//! alone.

use std::path::{Path, PathBuf};

/// Where they are mounted: all together, or one directory for each kind.
const ROOT: &str = "/sys/fs/cgroup";

/// Who makes groups for a runtime.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Driver {
    /// Itself, as directories.
    #[default]
    Files,
    /// systemd, as slices.
    Systemd,
}

/// What a runtime calls the group of a pod: `/kubepods/burstable/podu-1` is a slice in slices to systemd,
/// whose names say all that is above them.
pub(super) fn name(driver: Driver, group: &str) -> String {
    if driver == Driver::Files || group.is_empty() {
        return group.to_owned();
    }
    let mut path = String::new();
    let mut names: Vec<String> = Vec::new();
    for part in group.split('/').filter(|part| !part.is_empty()) {
        // A dash would say that something is above.
        names.push(part.replace('-', "_"));
        path = format!("{path}/{}.slice", names.join("-"));
    }
    path
}

/// Takes away the group of a pod, if it is empty. systemd does so itself.
pub(super) fn remove(group: &str) {
    for place in places(Path::new(ROOT), group) {
        match std::fs::remove_dir(&place) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                tracing::debug!(group = %place.display(), %error, "a control group stays");
            }
            Ok(()) | Err(_) => {}
        }
    }
}

/// Where a group may be: the directories of all kinds, or the only one.
fn places(root: &Path, group: &str) -> Vec<PathBuf> {
    let group = group.trim_matches('/');
    if group.is_empty() || group.split('/').any(|part| part == "..") {
        return Vec::new();
    }
    let kinds = std::fs::read_dir(root).into_iter().flatten().flatten();
    let kinds = kinds.map(|kind| kind.path().join(group));
    let all = kinds.chain(std::iter::once(root.join(group)));
    all.filter(|place| place.is_dir()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_paths_or_slices() {
        let group = "/kubepods/burstable/pod0a-1b";
        assert_eq!(name(Driver::Files, group), group);
        assert_eq!(
            name(Driver::Systemd, group),
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0a_1b.slice"
        );
        assert_eq!(name(Driver::Systemd, ""), "");
    }

    #[test]
    fn a_group_is_looked_for_in_every_hierarchy_and_nowhere_else() {
        let root = tempfile::TempDir::new().expect("a directory");
        let root = root.path();
        for place in [
            "memory/kubepods/pod1",
            "cpu/kubepods/pod1",
            "kubepods/pod1",
            "cpu/kubepods/pod2",
        ] {
            std::fs::create_dir_all(root.join(place)).expect("it can be made");
        }
        let mut found = places(root, "/kubepods/pod1");
        found.sort();
        let expected = ["cpu/kubepods/pod1", "kubepods/pod1", "memory/kubepods/pod1"];
        assert_eq!(found, expected.map(|place| root.join(place)));
        assert!(places(root, "").is_empty() && places(root, "/").is_empty());
        assert!(places(root, "/kubepods/../memory").is_empty());
    }
}
