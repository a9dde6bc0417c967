//! Small files that must be there whole or not at all.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Why certificates could not be read or made.
#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    /// A file could not be read or written.
    #[error("cannot use {path}")]
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
    #[error("{path} does not hold a usable {what}; remove it to have a new one made")]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What it should hold.
        what: &'static str,
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
        fs::rename(&new, path)
    };
    write().map_err(at(path))
}
