//! What containers use, by what the kernel counts for them.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use kennel_shim::cgroup::Cgroups;
use kennel_shim::state::Life;

use super::spec::Spec;
use super::store::Store;
use crate::runtime::Usage;

/// Files of one layer that are counted, at most: a container that made more is measured too low, and costs
/// no more time than this.
const FILES: usize = 100_000;

/// Of all that run.
pub(super) fn all(store: &Store, cgroups: &Cgroups) -> Vec<Usage> {
    let running = store
        .containers()
        .into_iter()
        .filter(|(_, dir)| matches!(dir.life(), Life::Kept(Some(_))));
    let usages = running.filter_map(|(pod, dir)| {
        let spec = Spec::read(dir.path()).ok()?;
        let used = cgroups.group(&spec.cgroup?).usage()?;
        Some(Usage {
            pod,
            container: spec.name,
            memory: used.memory,
            cpu: used.cpu,
            disk: size(&dir.join("upper")),
        })
    });
    usages.collect()
}

/// What the files below a directory take on disk.
fn size(dir: &Path) -> u64 {
    let mut left = vec![dir.to_owned()];
    let (mut bytes, mut files) = (0, 0);
    while let Some(dir) = left.pop() {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            let Ok(about) = entry.metadata() else {
                continue;
            };
            bytes += about.blocks() * 512;
            files += 1;
            if about.is_dir() && files < FILES {
                left.push(entry.path());
            }
        }
    }
    bytes
}
