//! What is mounted on this machine, by the kernel's own list.

use std::ffi::{CString, OsString};
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

/// The mount points at or below a directory, in the order they were made. The path must be free of links.
pub(super) fn below(dir: &Path) -> io::Result<Vec<PathBuf>> {
    // The thread's, not the process's: several nodes in one process have mounts of their own.
    let list = std::fs::read("/proc/thread-self/mountinfo")?;
    let points = list.split(|byte| *byte == b'\n').filter_map(point);
    Ok(points.filter(|point| point.starts_with(dir)).collect())
}

/// The mount point of a line: its fifth word, in which some characters are written as octal numbers.
fn point(line: &[u8]) -> Option<PathBuf> {
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

/// Is something mounted right here?
pub(super) fn is_point(path: &Path) -> io::Result<bool> {
    let path = path.canonicalize()?;
    Ok(below(&path)?.contains(&path))
}

/// Mounts memory of at most so many bytes (0: no bound) on a directory, unless something is mounted there. Says
/// whether it did.
pub(super) fn tmpfs(dir: &Path, size: u64) -> io::Result<bool> {
    if is_point(dir)? {
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

/// Takes away what is mounted at a point; at once from view if somebody still uses it.
pub(super) fn take_away(point: &Path) -> io::Result<()> {
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
    fn lines_are_read_with_their_escapes() {
        let check = |line: &str, expected: Option<&str>| {
            assert_eq!(
                point(line.as_bytes()),
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
    fn the_machine_s_own_mounts_are_found() {
        assert!(below(Path::new("/proc")).unwrap().contains(&"/proc".into()));
        assert!(!is_point(Path::new("/proc/self/fd")).unwrap());
    }
}
