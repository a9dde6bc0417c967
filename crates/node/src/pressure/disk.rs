//! How full a disk is, and what a directory takes of it. Everything here waits for disks: not for threads that
//! must not.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use kennel_core::pod::eviction::Reading;

/// How many bytes and files a disk has left. None for what its file system does not count.
pub fn left(path: &Path) -> (Option<Reading>, Option<Reading>) {
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

/// The device that a path is on.
pub fn device(path: &Path) -> Option<u64> {
    fs::metadata(path).ok().map(|about| about.dev())
}

/// What a directory takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Bytes, as the disk counts them.
    pub bytes: u64,
    /// Files and directories.
    pub inodes: u64,
}

/// What a directory takes with all that is in it, but without other file systems that are mounted there. What
/// vanishes meanwhile takes nothing.
pub fn taken(path: &Path) -> Taken {
    let mut taken = Taken::default();
    let Ok(top) = fs::symlink_metadata(path) else {
        return taken;
    };
    let (device, mut linked) = (top.dev(), BTreeSet::new());
    let mut waiting = vec![(path.to_owned(), top)];
    while let Some((path, about)) = waiting.pop() {
        let again = about.nlink() > 1 && !about.is_dir() && !linked.insert(about.ino());
        if about.dev() != device || again {
            continue;
        }
        taken.bytes += about.blocks() * 512;
        taken.inodes += 1;
        if !about.is_dir() {
            continue;
        }
        for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
            if let Ok(about) = entry.metadata() {
                waiting.push((entry.path(), about));
            }
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn what_is_in_a_directory_is_counted_once() {
        let dir = TempDir::new().unwrap();
        let empty = taken(dir.path());
        fs::create_dir(dir.path().join("sub")).unwrap();
        let file = dir.path().join("sub/file");
        fs::write(&file, vec![1; 1 << 20]).unwrap();
        fs::hard_link(&file, dir.path().join("again")).unwrap();
        std::os::unix::fs::symlink("/", dir.path().join("everything")).unwrap();
        let full = taken(dir.path());
        let more = full.bytes - empty.bytes;
        assert!((1 << 20..(1 << 20) + (64 << 10)).contains(&more), "{more}");
        assert_eq!(full.inodes - empty.inodes, 3);
        assert_eq!(taken(&dir.path().join("none")), Taken::default());
    }

    #[test]
    fn a_disk_says_what_it_has_left() {
        let (bytes, _) = left(Path::new("/"));
        let bytes = bytes.unwrap();
        assert!(bytes.available <= bytes.capacity, "{bytes:?}");
        assert_eq!(left(Path::new("/there/is/no/such/path")), (None, None));
    }
}
