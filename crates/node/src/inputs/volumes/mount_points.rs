//! Mounts and unmounts file systems of volumes.

use std::ffi::CString;
use std::io;
use std::path::Path;

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use crate::mountinfo;

/// Whether something is mounted at exactly this path.
pub(super) fn is_mount_point(path: &Path) -> io::Result<bool> {
    let path = path.canonicalize()?;
    Ok(mountinfo::below(&path)?.contains(&path))
}

/// Mounts a tmpfs with a size limit in bytes (0 for none), unless something is mounted there. Returns whether it did.
pub(super) fn mount_tmpfs(dir: &Path, size: u64) -> io::Result<bool> {
    if is_mount_point(dir)? {
        return Ok(false);
    }
    let options = match size {
        0 => "mode=0755".to_owned(),
        size => format!("mode=0755,size={size}"),
    };
    let options = CString::new(options)?;
    mount("tmpfs", dir, "tmpfs", MountFlags::empty(), &*options)?;
    Ok(true)
}

/// Unmounts; lazily if the mount is busy.
pub(super) fn unmount_point(point: &Path) -> io::Result<()> {
    match unmount(point, UnmountFlags::NOFOLLOW) {
        Err(rustix::io::Errno::BUSY) => Ok(unmount(
            point,
            UnmountFlags::NOFOLLOW | UnmountFlags::DETACH,
        )?),
        other => Ok(other?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machines_own_mounts_are_found() {
        assert!(is_mount_point(Path::new("/proc")).unwrap());
        assert!(!is_mount_point(Path::new("/proc/self/fd")).unwrap());
    }
}
