//! The mounts that this process sees, as the kernel lists them.

use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) id: u32,
    /// The mount it is on.
    pub(super) parent: u32,
    pub(super) point: PathBuf,
}

/// All of them, in the order they were made.
pub(super) fn read() -> std::io::Result<Vec<Entry>> {
    let text = std::fs::read("/proc/self/mountinfo")?;
    Ok(text
        .split(|byte| *byte == b'\n')
        .filter_map(parse)
        .collect())
}

fn parse(line: &[u8]) -> Option<Entry> {
    let mut fields = line.split(|byte| *byte == b' ');
    let mut number = || std::str::from_utf8(fields.next()?).ok()?.parse().ok();
    let (id, parent) = (number()?, number()?);
    let point = std::ffi::OsString::from_vec(unescape(fields.nth(2)?));
    Some(Entry {
        id,
        parent,
        point: point.into(),
    })
}

/// Spaces and the like are written as `\040`.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    let mut rest = field;
    while let Some((&byte, after)) = rest.split_first() {
        let escaped = after.first_chunk::<3>().filter(|_| byte == b'\\');
        let escaped = escaped
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        if let Some(meant) = escaped {
            plain.push(meant);
            rest = &after[3..];
        } else {
            plain.push(byte);
            rest = after;
        }
    }
    plain
}

/// Those right on top of a mount; of several at one place only the last can be seen.
pub(super) fn on(entries: &[Entry], mount: &Entry) -> Vec<Entry> {
    let mut found: Vec<Entry> = Vec::new();
    for entry in entries
        .iter()
        .filter(|entry| entry.parent == mount.id && entry.id != mount.id)
    {
        found.retain(|earlier| earlier.point != entry.point);
        found.push(entry.clone());
    }
    found
}

/// The one that a path is on.
pub(super) fn holder<'a>(entries: &'a [Entry], path: &Path) -> Option<&'a Entry> {
    // Of equal ones the last: it covers the others.
    entries
        .iter()
        .filter(|entry| path.starts_with(&entry.point))
        .max_by_key(|entry| entry.point.components().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: u32, parent: u32, point: &str) -> Entry {
        Entry {
            id,
            parent,
            point: point.into(),
        }
    }

    #[test]
    fn lines_are_read() {
        let check = |line: &str, expected: Option<Entry>| {
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
                holder(&table, Path::new(path)).unwrap().id,
                expected,
                "{path}"
            );
        };
        check("/etc", 1);
        check("/device", 1);
        check("/dev/null", 2);
        check("/dev/pts/0", 4);
        let ids = |mount: usize| {
            on(&table, &table[mount])
                .iter()
                .map(|entry| entry.id)
                .collect::<Vec<_>>()
        };
        assert_eq!(ids(0), [2]);
        assert_eq!(ids(1), [4]);
    }
}
