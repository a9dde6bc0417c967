//! Free space of disks, and disk usage of directories. All functions block.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use kennel_core::pod::eviction::Reading;

/// Free bytes and inodes of the disk that `path` is on. None for what its file system does not count.
pub fn free(path: &Path) -> (Option<Reading>, Option<Reading>) {
    let Ok(disk) = rustix::fs::statvfs(path) else {
        return (None, None);
    };
    let bytes = Reading {
        available: disk.f_bavail.saturating_mul(disk.f_frsize),
        capacity: disk.f_blocks.saturating_mul(disk.f_frsize),
    };
    let files = Reading {
        available: disk.f_ffree,
        capacity: disk.f_files,
    };
    let counted = |reading: Reading| (reading.capacity > 0).then_some(reading);
    (counted(bytes), counted(files))
}

pub fn device(path: &Path) -> Option<u64> {
    fs::metadata(path).ok().map(|about| about.dev())
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskUsage {
    /// Allocated bytes.
    pub bytes: u64,
    pub inodes: u64,
}

/// The usage of a directory and everything in it, without other file systems that are mounted there. Counts hard
/// links once, and ignores files that vanish meanwhile.
pub fn usage(path: &Path) -> DiskUsage {
    let mut usage = DiskUsage::default();
    let Ok(top) = fs::symlink_metadata(path) else {
        return usage;
    };
    let (device, mut linked) = (top.dev(), BTreeSet::new());
    let mut pending = vec![(path.to_owned(), top)];
    while let Some((path, about)) = pending.pop() {
        let counted = about.nlink() > 1 && !about.is_dir() && !linked.insert(about.ino());
        if about.dev() != device || counted {
            continue;
        }
        usage.bytes += about.blocks() * 512;
        usage.inodes += 1;
        if !about.is_dir() {
            continue;
        }
        for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
            if let Ok(about) = entry.metadata() {
                pending.push((entry.path(), about));
            }
        }
    }
    usage
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn hard_links_are_counted_once() {
        let dir = TempDir::new().unwrap();
        let empty = usage(dir.path());
        fs::create_dir(dir.path().join("sub")).unwrap();
        let file = dir.path().join("sub/file");
        fs::write(&file, vec![1; 1 << 20]).unwrap();
        fs::hard_link(&file, dir.path().join("again")).unwrap();
        std::os::unix::fs::symlink("/", dir.path().join("everything")).unwrap();
        let full = usage(dir.path());
        let more = full.bytes - empty.bytes;
        assert!((1 << 20..(1 << 20) + (64 << 10)).contains(&more), "{more}");
        assert_eq!(full.inodes - empty.inodes, 3);
        assert_eq!(usage(&dir.path().join("none")), DiskUsage::default());
    }

    #[test]
    fn a_disk_has_free_bytes() {
        let (bytes, _) = free(Path::new("/"));
        let bytes = bytes.unwrap();
        assert!(bytes.available <= bytes.capacity, "{bytes:?}");
        assert_eq!(free(Path::new("/there/is/no/such/path")), (None, None));
    }
}
