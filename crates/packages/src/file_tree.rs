//! A tree of files that is written as a reproducible tar: sorted by name, owned by root, with one modification time.

use std::collections::BTreeMap;
use std::io::{self, Write};

use tar::{Builder, EntryType, Header};

/// Entries by path, without a leading `/`.
#[derive(Clone, Debug, Default)]
pub struct FileTree {
    entries: BTreeMap<String, Entry>,
}

#[derive(Clone, Debug)]
enum Entry {
    Directory { mode: u32 },
    File { mode: u32, content: Vec<u8> },
    Symlink { target: String },
}

impl FileTree {
    /// Adds an empty directory, or changes the mode of an existing one.
    pub fn directory(&mut self, path: &str, mode: u32) {
        self.insert(path, Entry::Directory { mode });
    }

    /// Adds a file and its parent directories.
    pub fn file(&mut self, path: &str, content: impl Into<Vec<u8>>, mode: u32) {
        let content = content.into();
        self.insert(path, Entry::File { mode, content });
    }

    pub fn symlink(&mut self, path: &str, target: &str) {
        let target = target.to_owned();
        self.insert(path, Entry::Symlink { target });
    }

    fn insert(&mut self, path: &str, entry: Entry) {
        let path = path.trim_matches('/');
        for (at, _) in path.match_indices('/') {
            let parent = path[..at].to_owned();
            let directory = Entry::Directory { mode: 0o755 };
            self.entries.entry(parent).or_insert(directory);
        }
        self.entries.insert(path.to_owned(), entry);
    }

    /// Writes a tar; `mtime` is in seconds since 1970.
    pub fn write_tar(&self, to: &mut impl Write, mtime: u64) -> io::Result<()> {
        let mut tar = Builder::new(to);
        for (path, entry) in &self.entries {
            match entry {
                Entry::Directory { mode } => {
                    let mut header = header(EntryType::Directory, *mode, 0, mtime);
                    tar.append_data(&mut header, format!("{path}/"), io::empty())?;
                }
                Entry::Symlink { target } => {
                    let mut header = header(EntryType::Symlink, 0o777, 0, mtime);
                    tar.append_link(&mut header, path, target)?;
                }
                Entry::File { mode, content } => {
                    let size = content.len() as u64;
                    let mut header = header(EntryType::Regular, *mode, size, mtime);
                    tar.append_data(&mut header, path, content.as_slice())?;
                }
            }
        }
        tar.finish()
    }
}

fn header(entry_type: EntryType, mode: u32, size: u64, mtime: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(entry_type);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(size);
    header.set_mtime(mtime);
    header
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::command::run;

    #[test]
    fn gnu_tar_reads_it() {
        let mut tree = FileTree::default();
        tree.file("/usr/bin/program", *b"#!/bin/sh\n", 0o755);
        tree.symlink("bin", "usr/bin");
        tree.directory("tmp", 0o1777);
        tree.file("empty", *b"", 0o600);
        let long = format!("usr/{}", "x".repeat(200));
        tree.file(&long, *b"", 0o644);
        let file = tempfile::NamedTempFile::new().unwrap();
        tree.write_tar(&mut file.as_file(), 86400).unwrap();
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
            &format!("-rw-r--r-- 0/0 0 1970-01-02 00:00 {long}"),
        ];
        assert_eq!(lines, expected);
    }
}
