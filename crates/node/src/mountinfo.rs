//! Parses the kernel's list of mounts.

use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

/// A mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MountEntry {
    pub(crate) id: u32,
    /// The id of the mount that it is mounted on.
    pub(crate) parent: u32,
    pub(crate) mount_point: PathBuf,
}

/// All mounts of this mount namespace, in the order of mounting.
pub(crate) fn read() -> std::io::Result<Vec<MountEntry>> {
    // The thread's list, not the process's: nodes in one process may have mount namespaces of their own.
    let text = std::fs::read("/proc/thread-self/mountinfo")?;
    Ok(text
        .split(|byte| *byte == b'\n')
        .filter_map(parse)
        .collect())
}

fn parse(line: &[u8]) -> Option<MountEntry> {
    let mut fields = line.split(|byte| *byte == b' ');
    let mut number = || std::str::from_utf8(fields.next()?).ok()?.parse().ok();
    let (id, parent) = (number()?, number()?);
    let mount_point = std::ffi::OsString::from_vec(unescape(fields.nth(2)?));
    Some(MountEntry {
        id,
        parent,
        mount_point: mount_point.into(),
    })
}

/// Decodes octal escapes such as `\040`.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::new();
    let mut rest = field;
    while let Some((&byte, after)) = rest.split_first() {
        let escaped = after.first_chunk::<3>().filter(|_| byte == b'\\');
        let escaped = escaped
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        if let Some(byte) = escaped {
            decoded.push(byte);
            rest = &after[3..];
        } else {
            decoded.push(byte);
            rest = after;
        }
    }
    decoded
}

/// The mount points at or below a directory, oldest first. The path must not contain links.
pub fn below(dir: &Path) -> std::io::Result<Vec<PathBuf>> {
    let points = read()?.into_iter().map(|entry| entry.mount_point);
    Ok(points.filter(|point| point.starts_with(dir)).collect())
}

/// The visible mounts directly on a mount; of several at one mount point, only the last is visible.
pub(crate) fn children(entries: &[MountEntry], mount: &MountEntry) -> Vec<MountEntry> {
    let mut found: Vec<MountEntry> = Vec::new();
    for entry in entries
        .iter()
        .filter(|entry| entry.parent == mount.id && entry.id != mount.id)
    {
        found.retain(|earlier| earlier.mount_point != entry.mount_point);
        found.push(entry.clone());
    }
    found
}

/// The mount that a path is on.
pub(crate) fn containing<'a>(entries: &'a [MountEntry], path: &Path) -> Option<&'a MountEntry> {
    // Of several at one mount point, `max_by_key` returns the last, which hides the others.
    entries
        .iter()
        .filter(|entry| path.starts_with(&entry.mount_point))
        .max_by_key(|entry| entry.mount_point.components().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: u32, parent: u32, point: &str) -> MountEntry {
        MountEntry {
            id,
            parent,
            mount_point: point.into(),
        }
    }

    #[test]
    fn lines_are_parsed() {
        let check = |line: &str, expected: Option<MountEntry>| {
            assert_eq!(parse(line.as_bytes()), expected, "{line}");
        };
        check(
            "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/vda rw",
            Some(entry(22, 1, "/")),
        );
        check(
            "30 22 0:5 / /mnt/a\\040b rw - tmpfs tmpfs rw",
            Some(entry(30, 22, "/mnt/a b")),
        );
        check(
            "22 27 0:21 / /a\\040b\\134c rw - ext4 /dev/sda rw",
            Some(entry(22, 27, "/a b\\c")),
        );
        check(
            "22 27 0:21 / /odd\\x rw - ext4 /dev/sda rw",
            Some(entry(22, 27, "/odd\\x")),
        );
        check("", None);
    }

    #[test]
    fn the_mount_of_a_path_is_the_nearest_and_latest() {
        let table = [
            entry(1, 0, "/"),
            entry(2, 1, "/dev"),
            entry(3, 2, "/dev/pts"),
            entry(4, 2, "/dev/pts"),
        ];
        let check = |path: &str, expected: u32| {
            assert_eq!(
                containing(&table, Path::new(path)).unwrap().id,
                expected,
                "{path}"
            );
        };
        check("/etc", 1);
        check("/device", 1);
        check("/dev/null", 2);
        check("/dev/pts/0", 4);
        let ids = |mount: usize| {
            children(&table, &table[mount])
                .iter()
                .map(|entry| entry.id)
                .collect::<Vec<_>>()
        };
        assert_eq!(ids(0), [2]);
        assert_eq!(ids(1), [4]);
    }

    #[test]
    fn the_machines_own_mounts_are_found() {
        let found = below(Path::new("/proc/")).unwrap();
        assert_eq!(found.first(), Some(&PathBuf::from("/proc")));
        assert!(found.iter().all(|point| point.starts_with("/proc")));
    }
}
