//! The archive of a backup: a tar file whose first member lists the SHA-256 of all others.
//!
//! ```text
//!  SHA256SUMS · backup.json · kennel.db · pki/…
//! ```
//!
//! `tar xf FILE && sha256sum -c SHA256SUMS` verifies it without Kennel.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};

use aws_lc_rs::digest::{Context, SHA256};
use data_encoding::HEXLOWER;
use tar::{Archive, Builder, EntryType, Header};

const SUMS: &str = "SHA256SUMS";
/// Far more than the few files of a backup need.
const SUMS_BYTES_MAX: u64 = 1 << 20;

pub(super) struct Member {
    pub(super) name: String,
    pub(super) mode: u32,
    pub(super) content: Content,
}

pub(super) enum Content {
    Bytes(Vec<u8>),
    File(PathBuf),
}

/// Why an archive cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error("cannot read it")]
    Read(#[from] io::Error),
    #[error("it is not a backup of Kennel: its first member is not {SUMS}")]
    NoBackup,
    #[error("its list of checksums is malformed")]
    Sums,
    #[error("it has the member {0:?}, which its list of checksums does not have")]
    Unexpected(String),
    #[error("{0} is not what was backed up: its checksum does not match")]
    Mismatch(String),
    #[error("{0} is missing")]
    Missing(String),
}

impl Content {
    fn open(&self) -> io::Result<(u64, Box<dyn Read + '_>)> {
        match self {
            Self::Bytes(bytes) => Ok((bytes.len() as u64, Box::new(&bytes[..]))),
            Self::File(path) => {
                let file = File::open(path)?;
                Ok((file.metadata()?.len(), Box::new(file)))
            }
        }
    }
}

pub(super) fn write<W: Write>(to: W, members: &[Member]) -> io::Result<W> {
    let mut sums = Vec::new();
    for member in members {
        let (_, content) = member.content.open()?;
        let mut content = Hashing::new(content);
        io::copy(&mut content, &mut io::sink())?;
        sums.push(format!("{}  {}\n", content.finish(), member.name));
    }
    let sums = sums.concat();
    let mut tar = Builder::new(to);
    append(&mut tar, SUMS, 0o600, sums.len() as u64, sums.as_bytes())?;
    for Member {
        name,
        mode,
        content,
    } in members
    {
        let (length, content) = content.open()?;
        append(&mut tar, name, *mode, length, content)?;
    }
    tar.into_inner()
}

fn append<W: Write>(
    tar: &mut Builder<W>,
    name: &str,
    mode: u32,
    length: u64,
    content: impl Read,
) -> io::Result<()> {
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Regular);
    header.set_mode(mode);
    header.set_size(length);
    tar.append_data(&mut header, name, content)
}

/// A file of an archive while it is read.
pub(super) struct Found<'a> {
    /// Relative, without `..`.
    pub(super) name: &'a str,
    pub(super) mode: u32,
    pub(super) content: &'a mut dyn Read,
}

/// Passes every file to `take`, and fails if one is not what was written, is missing, or too many. What `take` did
/// counts only if this succeeds.
pub(super) fn read(
    from: impl Read,
    mut take: impl FnMut(Found<'_>) -> io::Result<()>,
) -> Result<(), ArchiveError> {
    let mut archive = Archive::new(from);
    let mut sums: Option<BTreeMap<String, String>> = None;
    for entry in archive.entries()? {
        // The tar library's errors about files that are no archives say less.
        let mut entry = entry.map_err(|error| match sums {
            None => ArchiveError::NoBackup,
            Some(_) => error.into(),
        })?;
        let name = entry.path()?.to_string_lossy().into_owned();
        let Some(listed) = &mut sums else {
            if name != SUMS {
                return Err(ArchiveError::NoBackup);
            }
            let mut text = String::new();
            entry.take(SUMS_BYTES_MAX).read_to_string(&mut text)?;
            sums = Some(parse_sums(&text).ok_or(ArchiveError::Sums)?);
            continue;
        };
        let is_file = entry.header().entry_type() == EntryType::Regular;
        let expected = listed.remove(&name).filter(|_| is_file && is_safe(&name));
        let Some(expected) = expected else {
            return Err(ArchiveError::Unexpected(name));
        };
        let mode = entry.header().mode()?;
        let mut content = Hashing::new(&mut entry);
        take(Found {
            name: &name,
            mode,
            content: &mut content,
        })?;
        io::copy(&mut content, &mut io::sink())?;
        if content.finish() != expected {
            return Err(ArchiveError::Mismatch(name));
        }
    }
    // To the end, which verifies the last chunk of a sealed archive.
    io::copy(&mut archive.into_inner(), &mut io::sink())?;
    match sums.ok_or(ArchiveError::NoBackup)?.into_keys().next() {
        Some(name) => Err(ArchiveError::Missing(name)),
        None => Ok(()),
    }
}

fn parse_sums(text: &str) -> Option<BTreeMap<String, String>> {
    let pair = |line: &str| {
        let (sum, name) = line.split_once("  ")?;
        Some((name.to_owned(), sum.to_owned()))
    };
    text.lines().map(pair).collect()
}

/// Whether a name stays below the directory that it is joined to.
fn is_safe(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    !name.is_empty() && parts.all(|part| matches!(part, Component::Normal(_)))
}

struct Hashing<R> {
    from: R,
    digest: Context,
}

impl<R: Read> Hashing<R> {
    fn new(from: R) -> Self {
        let digest = Context::new(&SHA256);
        Self { from, digest }
    }

    fn finish(self) -> String {
        HEXLOWER.encode(self.digest.finish().as_ref())
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(to)?;
        self.digest.update(&to[..count]);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members() -> Vec<Member> {
        let member = |name: &str, text: &str| Member {
            name: name.to_owned(),
            mode: 0o600,
            content: Content::Bytes(text.as_bytes().to_vec()),
        };
        vec![
            member("backup.json", "{}"),
            member("pki/ca.crt", "certificate"),
        ]
    }

    fn names(bytes: &[u8]) -> Result<Vec<String>, String> {
        let mut names = Vec::new();
        let read = read(bytes, |found| {
            names.push(found.name.to_owned());
            Ok(())
        });
        read.map(|()| names).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_written_is_read() {
        let bytes = write(Vec::new(), &members()).unwrap();
        assert_eq!(names(&bytes).unwrap(), ["backup.json", "pki/ca.crt"]);
    }

    /// Each byte of every member, and of the list, is covered.
    #[test]
    fn changes_are_found() {
        let bytes = write(Vec::new(), &members()).unwrap();
        let at = |needle: &str| {
            let mut windows = bytes.windows(needle.len());
            windows.position(|w| w == needle.as_bytes()).unwrap()
        };
        let sum_of_certificate = at("  pki/ca.crt\n") - 1;
        for at in [at("{}"), at("certificate"), sum_of_certificate] {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(names(&changed).is_err(), "{at}");
        }
        let half = names(&bytes[..bytes.len() / 2]);
        assert!(half.is_err(), "{half:?}");
    }

    #[test]
    fn other_files_and_other_members_are_refused() {
        let no_backup = "it is not a backup of Kennel: its first member is not SHA256SUMS";
        assert_eq!(names(b"").unwrap_err(), no_backup);
        assert_eq!(names(&[b'x'; 2000]).unwrap_err(), no_backup);
        let mut tar = Builder::new(Vec::new());
        append(&mut tar, SUMS, 0o600, 0, io::empty()).unwrap();
        append(&mut tar, "extra", 0o600, 0, io::empty()).unwrap();
        let said = names(&tar.into_inner().unwrap()).unwrap_err();
        assert!(said.starts_with("it has the member \"extra\""), "{said}");
        for name in ["../x", "/etc/passwd", "a/../b", ""] {
            assert!(!is_safe(name), "{name}");
        }
        assert!(is_safe("pki/nested/key"));
    }
}
