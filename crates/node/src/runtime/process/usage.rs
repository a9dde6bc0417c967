//! Resource usage of containers, from their cgroups.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use kennel_shim::cgroup::Cgroups;
use kennel_shim::state::Status;

use super::spec::Spec;
use super::store::Store;
use crate::runtime::Usage;

/// Bounds the time of measuring: of containers with more files, the disk usage is too low.
const FILES_MAX: usize = 100_000;

/// The usage of all running containers.
pub(super) fn all(store: &Store, cgroups: &Cgroups, disks: bool) -> Vec<Usage> {
    let running = store
        .containers()
        .into_iter()
        .filter(|(_, dir)| matches!(dir.status(), Status::Supervised(Some(_))));
    let usages = running.filter_map(|(pod, dir)| {
        let spec = Spec::read(dir.path()).ok()?;
        let cgroup = spec.cgroup?;
        let used = cgroups.group(&cgroup).usage()?;
        Some(Usage {
            pod,
            container: spec.name,
            id: dir.id(),
            cgroup,
            memory: used.memory,
            cpu: used.cpu,
            disk: disks.then(|| disk_usage(&dir.join("upper"))),
        })
    });
    usages.collect()
}

/// Bytes on disk of all files below a directory.
fn disk_usage(dir: &Path) -> u64 {
    let mut left = vec![dir.to_owned()];
    let (mut bytes, mut files) = (0, 0);
    while let Some(dir) = left.pop() {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            bytes += metadata.blocks() * 512;
            files += 1;
            if metadata.is_dir() && files < FILES_MAX {
                left.push(entry.path());
            }
        }
    }
    bytes
}
