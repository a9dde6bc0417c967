//! Small files that must be there whole or not at all.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Why certificates could not be read or made.
#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    /// A file could not be read or written.
    #[error("cannot use {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
    /// A certificate or key could not be made.
    #[error("cannot make a certificate")]
    Make(#[from] rcgen::Error),
    /// A file does not hold what its name says.
    #[error(
        "{} does not hold a usable {what}; put back a copy of it, or remove it to have a new one made",
        path.display()
    )]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What it should hold.
        what: &'static str,
    },
    /// There is a certificate authority, but not its key.
    #[error(
        "{} is there, but its key {} is not; put it back, or remove the certificate to have a new \
         certificate authority made, which no client knows yet",
        cert.display(),
        key.display()
    )]
    Keyless {
        /// The certificate.
        cert: PathBuf,
        /// Where its key should be.
        key: PathBuf,
    },
    /// A certificate and a key that do not belong together.
    #[error("{} and {} do not belong together", cert.display(), key.display())]
    Mismatch {
        /// The certificate.
        cert: PathBuf,
        /// The key.
        key: PathBuf,
    },
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> PkiError + use<> {
    let path = path.to_owned();
    |source| PkiError::File { path, source }
}

/// Makes a directory that only its owner can enter.
pub fn make_dir(dir: &Path) -> Result<(), PkiError> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(at(dir))
}

/// Reads a file, if it is there.
pub fn read(path: &Path) -> Result<Option<String>, PkiError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(at(path)(error)),
    }
}

/// Writes a private file: under another name first, synced, then moved into place.
pub fn write_private(path: &Path, text: &str) -> Result<(), PkiError> {
    write(path, text, 0o600)
}

/// Writes a public file the same way.
pub fn write_public(path: &Path, text: &str) -> Result<(), PkiError> {
    write(path, text, 0o644)
}

fn write(path: &Path, text: &str, mode: u32) -> Result<(), PkiError> {
    // What is there already is left alone: a start must not need room on a full disk.
    if is_there(path, text, mode) {
        return Ok(());
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    let write = || -> io::Result<()> {
        // A leftover of an interrupted start may have any mode: begin afresh.
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = fs::OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(mode).open(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, path)?;
        // The new name lives in the directory, which a power cut may forget unless it is synced.
        path.parent()
            .map_or(Ok(()), |dir| fs::File::open(dir)?.sync_all())
    };
    write().map_err(at(path))
}

fn is_there(path: &Path, text: &str, mode: u32) -> bool {
    let has_mode = fs::metadata(path).is_ok_and(|m| m.permissions().mode() & 0o777 == mode);
    has_mode && fs::read(path).is_ok_and(|found| found == text.as_bytes())
}
