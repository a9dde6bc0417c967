//! Mount points of this machine, from the kernel's list.

use std::ffi::{CString, OsString};
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

/// The mount points at or below a directory, oldest first. The path must not contain links.
pub(super) fn below(dir: &Path) -> io::Result<Vec<PathBuf>> {
    // The thread's list, not the process's: nodes in one process may have mount namespaces of their own.
    let list = std::fs::read("/proc/thread-self/mountinfo")?;
    let points = list.split(|byte| *byte == b'\n').filter_map(parse_line);
    Ok(points.filter(|point| point.starts_with(dir)).collect())
}

/// The mount point of a line of `mountinfo`: its fifth field, with octal escapes.
fn parse_line(line: &[u8]) -> Option<PathBuf> {
    let word = line.split(|byte| *byte == b' ').nth(4)?;
    let mut path = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((first, after)) = rest.split_first() {
        let octal = after.get(..3).filter(|_| *first == b'\\');
        let octal = octal.and_then(|digits| std::str::from_utf8(digits).ok());
        if let Some(byte) = octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            path.push(byte);
            rest = &after[3..];
        } else {
            path.push(*first);
            rest = after;
        }
    }
    Some(OsString::from_vec(path).into())
}

/// Whether something is mounted at exactly this path.
pub(super) fn is_mount_point(path: &Path) -> io::Result<bool> {
    let path = path.canonicalize()?;
    Ok(below(&path)?.contains(&path))
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
    fn lines_are_parsed_with_their_escapes() {
        let check = |line: &str, expected: Option<&str>| {
            assert_eq!(
                parse_line(line.as_bytes()),
                expected.map(PathBuf::from),
                "{line}"
            );
        };
        let rest = "rw,relatime shared:1 - ext4 /dev/sda rw";
        check(&format!("22 27 0:21 / /proc {rest}"), Some("/proc"));
        check(
            &format!("22 27 0:21 / /a\\040b\\134c {rest}"),
            Some("/a b\\c"),
        );
        check(&format!("22 27 0:21 / /odd\\x {rest}"), Some("/odd\\x"));
        check("", None);
    }

    #[test]
    fn the_machines_own_mounts_are_found() {
        assert!(below(Path::new("/proc")).unwrap().contains(&"/proc".into()));
        assert!(!is_mount_point(Path::new("/proc/self/fd")).unwrap());
    }
}
