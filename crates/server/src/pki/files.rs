//! Atomic writes of small files.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    #[error("cannot use {}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("cannot create a certificate")]
    Create(#[from] rcgen::Error),
    #[error(
        "{} does not hold a usable {what}; restore it from a backup, or remove it to have a new one created",
        path.display()
    )]
    Unusable {
        path: PathBuf,
        /// What it should contain.
        what: &'static str,
    },
    #[error(
        "{} exists, but its key {} does not; restore the key, or remove the certificate to have a new \
         certificate authority created, which no client trusts yet",
        cert.display(),
        key.display()
    )]
    Keyless { cert: PathBuf, key: PathBuf },
    #[error("{} and {} do not belong together", cert.display(), key.display())]
    Mismatch { cert: PathBuf, key: PathBuf },
}

pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> PkiError + use<> {
    let path = path.to_owned();
    |source| PkiError::File { path, source }
}

/// Creates a directory with mode 0700.
pub fn make_dir(dir: &Path) -> Result<(), PkiError> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(at(dir))
}

/// Does nothing if the file does not exist.
pub fn remove(path: &Path) -> Result<(), PkiError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(at(path)(error)),
        _ => Ok(()),
    }
}

/// Makes renames in a directory survive a power failure.
pub fn sync_dir(dir: &Path) -> Result<(), PkiError> {
    let synced = fs::File::open(dir).and_then(|dir| dir.sync_all());
    synced.map_err(at(dir))
}

/// `None` if the file does not exist.
pub fn read(path: &Path) -> Result<Option<String>, PkiError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(at(path)(error)),
    }
}

/// Writes a file of mode 0600 atomically: to a temporary name, synced, then renamed.
pub fn write_private(path: &Path, text: &str) -> Result<(), PkiError> {
    write(path, text, 0o600)
}

/// Like [`write_private`], with mode 0644.
pub fn write_public(path: &Path, text: &str) -> Result<(), PkiError> {
    write(path, text, 0o644)
}

fn write(path: &Path, text: &str, mode: u32) -> Result<(), PkiError> {
    // Does not rewrite an unchanged file: a start must work on a full disk.
    if is_unchanged(path, text, mode) {
        return Ok(());
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    let write = || -> io::Result<()> {
        // A leftover of an interrupted start may have any mode.
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = fs::OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(mode).open(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, path)?;
        // Syncs the directory, so that the rename survives a power failure.
        path.parent()
            .map_or(Ok(()), |dir| fs::File::open(dir)?.sync_all())
    };
    write().map_err(at(path))
}

fn is_unchanged(path: &Path, text: &str, mode: u32) -> bool {
    let has_mode = fs::metadata(path).is_ok_and(|m| m.permissions().mode() & 0o777 == mode);
    has_mode && fs::read(path).is_ok_and(|found| found == text.as_bytes())
}
