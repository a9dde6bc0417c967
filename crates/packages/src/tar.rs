//! A tree of files as a tar: in the order of their names, owned by root, all of one time. The same tree is the
//! same bytes.

use std::collections::BTreeMap;
use std::io::{self, Write};

/// What tars are made of.
const BLOCK: usize = 512;
/// The longest path and the longest target of a link that this form of tar holds.
const LONGEST: usize = 100;

/// Files by their paths, which have no `/` in front.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    entries: BTreeMap<String, Entry>,
}

#[derive(Clone, Debug)]
enum Entry {
    Directory { mode: u32 },
    File { mode: u32, content: Vec<u8> },
    Link { target: String },
}

impl Tree {
    /// An empty directory, or other rights for one that is there.
    pub fn directory(&mut self, path: &str, mode: u32) {
        self.put(path, Entry::Directory { mode });
    }

    /// A file. Directories on its way are made.
    pub fn file(&mut self, path: &str, content: impl Into<Vec<u8>>, mode: u32) {
        let content = content.into();
        self.put(path, Entry::File { mode, content });
    }

    /// A symbolic link.
    pub fn link(&mut self, path: &str, target: &str) {
        let target = target.to_owned();
        self.put(path, Entry::Link { target });
    }

    fn put(&mut self, path: &str, entry: Entry) {
        let path = path.trim_matches('/');
        for (at, _) in path.match_indices('/') {
            let parent = path[..at].to_owned();
            let open = Entry::Directory { mode: 0o755 };
            self.entries.entry(parent).or_insert(open);
        }
        self.entries.insert(path.to_owned(), entry);
    }

    /// Writes it all, as of a time in seconds since 1970.
    pub fn write(&self, to: &mut impl Write, time: u64) -> io::Result<()> {
        for (path, entry) in &self.entries {
            match entry {
                Entry::Directory { mode } => {
                    let path = format!("{path}/");
                    to.write_all(&header(&path, *mode, 0, b'5', "", time)?)?;
                }
                Entry::Link { target } => {
                    to.write_all(&header(path, 0o777, 0, b'2', target, time)?)?;
                }
                Entry::File { mode, content } => {
                    to.write_all(&header(path, *mode, content.len(), b'0', "", time)?)?;
                    to.write_all(content)?;
                    let rest = content.len().next_multiple_of(BLOCK) - content.len();
                    to.write_all(&[0; BLOCK][..rest])?;
                }
            }
        }
        to.write_all(&[0; 2 * BLOCK])
    }
}

/// The block before each file, as POSIX has it (`ustar`).
fn header(
    path: &str,
    mode: u32,
    size: usize,
    kind: u8,
    target: &str,
    time: u64,
) -> io::Result<[u8; BLOCK]> {
    if path.len() > LONGEST || target.len() > LONGEST {
        return Err(io::Error::other(format!("{path}: too long for a tar")));
    }
    let mut block = [0; BLOCK];
    let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, path.as_bytes());
    put(100, format!("{mode:07o}").as_bytes());
    put(108, b"0000000");
    put(116, b"0000000");
    put(124, format!("{size:011o}").as_bytes());
    put(136, format!("{time:011o}").as_bytes());
    // The sum of all bytes is taken with blanks in its own place.
    put(148, b"        ");
    put(156, &[kind]);
    put(157, target.as_bytes());
    put(257, b"ustar\x0000");
    put(329, b"0000000");
    put(337, b"0000000");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    Ok(block)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::run::run;

    fn tree() -> Tree {
        let mut tree = Tree::default();
        tree.file("/usr/bin/program", *b"#!/bin/sh\n", 0o755);
        tree.link("bin", "usr/bin");
        tree.directory("tmp", 0o1777);
        tree.file("empty", *b"", 0o600);
        tree
    }

    #[test]
    fn other_programs_read_it() {
        let file = tempfile::NamedTempFile::new().unwrap();
        tree().write(&mut file.as_file(), 86400).unwrap();
        let mut tar = Command::new("tar");
        let listed = run(tar
            .args(["-tv", "--utc", "--numeric-owner", "-f"])
            .arg(file.path()));
        let lines: Vec<String> = listed
            .unwrap()
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        let expected = [
            "lrwxrwxrwx 0/0 0 1970-01-02 00:00 bin -> usr/bin",
            "-rw------- 0/0 0 1970-01-02 00:00 empty",
            "drwxrwxrwt 0/0 0 1970-01-02 00:00 tmp/",
            "drwxr-xr-x 0/0 0 1970-01-02 00:00 usr/",
            "drwxr-xr-x 0/0 0 1970-01-02 00:00 usr/bin/",
            "-rwxr-xr-x 0/0 10 1970-01-02 00:00 usr/bin/program",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut tree = Tree::default();
        tree.file(&"x".repeat(101), *b"", 0o644);
        assert!(tree.write(&mut Vec::new(), 0).is_err());
    }
}
