//! Unmounts what an agent mounted.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rustix::mount::{UnmountFlags, unmount};

use super::Failure;
use crate::mountinfo;

/// Unmounts everything below a directory, but not the directory itself, which may be a disk of the machine. Returns what
/// is still mounted.
pub fn unmount_below(dir: &Path) -> Vec<Failure> {
    let mut errors = BTreeMap::new();
    for point in below(dir).into_iter().rev() {
        if let Err(error) = unmount(&point, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW) {
            errors.insert(point, error.to_string());
        }
    }
    let remaining = below(dir).into_iter().map(|point| {
        let why = errors.remove(&point);
        let why = why.unwrap_or_else(|| "it is still mounted".to_owned());
        Failure::new(format!("mount {}", point.display()), &why)
    });
    remaining.collect()
}

/// The mount points below a directory, oldest first.
pub(super) fn below(dir: &Path) -> Vec<PathBuf> {
    // The kernel's paths contain no links.
    let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let mut points = mountinfo::below(&dir).unwrap_or_default();
    points.retain(|point| *point != dir);
    points
}
