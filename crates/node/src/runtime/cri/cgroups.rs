//! The cgroups of pods: their names for the runtime, and their removal.
//!
//! Runtimes create the cgroup of a pod with its first container, but remove only the cgroups of containers.

use std::path::{Path, PathBuf};

/// The mount point of version 2, or the parent of the hierarchies of version 1.
const ROOT: &str = "/sys/fs/cgroup";

/// The runtime's cgroup driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Driver {
    #[default]
    Cgroupfs,
    Systemd,
}

/// The name of a pod's cgroup for a driver. For systemd, `/kubepods/burstable/podu-1` becomes nested slices whose names
/// contain those of their parents.
pub(super) fn name(driver: Driver, group: &str) -> String {
    if driver == Driver::Cgroupfs || group.is_empty() {
        return group.to_owned();
    }
    let mut path = String::new();
    let mut names: Vec<String> = Vec::new();
    for part in group.split('/').filter(|part| !part.is_empty()) {
        // In the name of a slice, a dash separates parents.
        names.push(part.replace('-', "_"));
        path = format!("{path}/{}.slice", names.join("-"));
    }
    path
}

/// The cgroup that containerd creates for a container, by its pod's.
pub(super) fn of_container(driver: Driver, group: &str, id: &str) -> String {
    let pod = name(driver, group);
    match driver {
        Driver::Cgroupfs => format!("{pod}/{id}"),
        Driver::Systemd => format!("{pod}/cri-containerd-{id}.scope"),
    }
}

/// Removes the cgroup of a pod, if it is empty. systemd does so itself.
pub(super) fn remove(group: &str) {
    for dir in directories(Path::new(ROOT), group) {
        match std::fs::remove_dir(&dir) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                tracing::debug!(group = %dir.display(), %error, "removing a cgroup failed");
            }
            Ok(()) | Err(_) => {}
        }
    }
}

/// The directories of a group in all hierarchies.
fn directories(root: &Path, group: &str) -> Vec<PathBuf> {
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
    fn names_are_paths_or_slices() {
        let group = "/kubepods/burstable/pod0a-1b";
        assert_eq!(name(Driver::Cgroupfs, group), group);
        assert_eq!(
            name(Driver::Systemd, group),
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0a_1b.slice"
        );
        assert_eq!(name(Driver::Systemd, ""), "");
        assert_eq!(
            of_container(Driver::Cgroupfs, "/kubepods/podu", "c1"),
            "/kubepods/podu/c1"
        );
        assert_eq!(
            of_container(Driver::Systemd, "/kubepods/podu", "c1"),
            "/kubepods.slice/kubepods-podu.slice/cri-containerd-c1.scope"
        );
    }

    #[test]
    fn directories_are_found_in_every_hierarchy() {
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
        let mut found = directories(root, "/kubepods/pod1");
        found.sort();
        let expected = ["cpu/kubepods/pod1", "kubepods/pod1", "memory/kubepods/pod1"];
        assert_eq!(found, expected.map(|place| root.join(place)));
        assert!(directories(root, "").is_empty() && directories(root, "/").is_empty());
        assert!(directories(root, "/kubepods/../memory").is_empty());
    }
}
