//! Writes the file of a backup, and keeps it only if it can be read back.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use super::archive::{self, Member};
use super::cipher::Sealer;
use super::{BackupError, Secret, UNFINISHED_SUFFIX, at, open};

/// Writes a file under a temporary name, reads it back, and renames it. Returns its length.
pub(super) fn write(
    path: &Path,
    members: &[Member],
    secret: Option<&Secret>,
) -> Result<u64, BackupError> {
    write_with(path, secret, |new| write_synced(new, members, secret))
}

/// The same, with what writes the temporary file.
fn write_with(
    path: &Path,
    secret: Option<&Secret>,
    write: impl FnOnce(&Path) -> io::Result<()>,
) -> Result<u64, BackupError> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(UNFINISHED_SUFFIX);
    let new = path.with_file_name(name);
    let outcome = write(&new)
        .map_err(at(&new))
        .and_then(|()| {
            let verified = open(&new, secret).and_then(|from| archive::read(from, |_| Ok(())));
            verified.map_err(|source| BackupError::Verify {
                path: path.to_owned(),
                source,
            })
        })
        .and_then(|()| rename_synced(&new, path).map_err(at(path)));
    if outcome.is_err() {
        // What cannot be removed, a later scheduled backup removes.
        let _absent = fs::remove_file(&new);
    }
    outcome?;
    Ok(fs::metadata(path).map_err(at(path))?.len())
}

fn write_synced(path: &Path, members: &[Member], secret: Option<&Secret>) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    let file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    let to = io::BufWriter::new(file);
    let written = match secret {
        None => archive::write(to, members)?,
        Some(secret) => archive::write(Sealer::new(to, secret)?, members)?.finish()?,
    };
    let file = written
        .into_inner()
        .map_err(io::IntoInnerError::into_error)?;
    file.sync_all()
}

fn rename_synced(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    match to.parent() {
        Some(parent) if parent.as_os_str().is_empty() => File::open(".")?.sync_all(),
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::archive::Content;
    use super::*;

    #[test]
    fn a_file_that_cannot_be_read_back_is_no_backup() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.backup");
        let member = Member {
            name: "pki/ca.crt".to_owned(),
            mode: 0o600,
            content: Content::Bytes(b"0123456789".repeat(100)),
        };
        let passphrase = || Secret::Passphrase("correct horse battery".to_owned());
        for secret in [None, Some(passphrase())] {
            let secret = secret.as_ref();
            let members = std::slice::from_ref(&member);
            let corrupt = |new: &Path| {
                write_synced(new, members, secret)?;
                let mut bytes = fs::read(new)?;
                let middle = bytes.len() / 2;
                bytes[middle] ^= 1;
                fs::write(new, bytes)
            };
            let refused = write_with(&path, secret, corrupt);
            assert!(
                matches!(refused, Err(BackupError::Verify { .. })),
                "{refused:?}"
            );
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
            write(&path, members, secret).unwrap();
            fs::remove_file(&path).unwrap();
        }
    }
}
