//! The agent program that a release build embeds, and replacing this process by it.
//!
//! The separate program needs less memory than the agent within the whole binary, and users still install one
//! binary: see `docs/decisions/0017-the-agent-alone.md`.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::read::GzDecoder;
use kennel_agent::new_files::{NEW_PATH, first_missing, remove_empty_directories};
use kennel_agent::node::absolute;

use crate::purge_delay::PURGE_DELAY;

/// Compressed (gzip); empty in debug builds.
const PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/kennel-agent"));
/// In the agent's data directory.
const DIRECTORY: &str = "bin";
const NAME: &str = "kennel-agent";

/// Writes the agent program to the data directory and replaces this process by it, with the same arguments. Returns
/// if there is none or on failure; the agent then runs in this process.
pub(crate) fn exec(data: &Path) {
    if PROGRAM.is_empty() {
        return;
    }
    let data = &absolute(data);
    let mut program = Vec::new();
    let error = match GzDecoder::new(PROGRAM).read_to_end(&mut program) {
        Ok(_) => exec_program(&program, data, std::env::args_os()),
        Err(error) => error,
    };
    tracing::warn!(
        "running the embedded agent in-process, which needs more memory: cannot execute it in {}: {error}",
        data.display()
    );
}

/// Returns only on failure.
fn exec_program(
    program: &[u8],
    data: &Path,
    mut arguments: impl Iterator<Item = OsString>,
) -> io::Error {
    let new = first_missing(&data.join(DIRECTORY).join(NAME));
    let path = match write(program, data) {
        Ok(path) => path,
        Err(error) => return error,
    };
    let mut command = Command::new(&path);
    command.arg0(arguments.next().unwrap_or_else(|| "kennel".into()));
    let purge_delay = std::env::var_os(PURGE_DELAY);
    // An idle agent frees nothing for minutes, and freed memory is returned only when more is freed: what the first lists
    // and the start of pods needed would stay, two megabytes of it.
    command.env(PURGE_DELAY, purge_delay.unwrap_or_else(|| "0".into()));
    if let Some(new) = &new {
        // The agent removes it if it fails to start.
        command.env(NEW_PATH, new);
    }
    let error = command.args(arguments).exec();
    if let Some(new) = new {
        // Cannot fail in a way that matters: a file that is left is used by the next start.
        let _left = fs::remove_file(&path);
        remove_empty_directories(&data.join(DIRECTORY), &new);
    }
    error
}

/// Writes the program, unless the file has the same content already.
fn write(program: &[u8], data: &Path) -> io::Result<PathBuf> {
    let directory = data.join(DIRECTORY);
    let path = directory.join(NAME);
    if fs::read(&path).is_ok_and(|content| content == program) {
        return Ok(path);
    }
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&directory)?;
    // Write and rename, so that a power failure leaves no partial file and a running agent keeps its own.
    let new = directory.join(format!("{NAME}.{}", std::process::id()));
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o700)
        .open(&new)?;
    file.write_all(program)?;
    file.sync_all()?;
    drop(file);
    fs::rename(&new, &path)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partial_or_different_file_is_replaced() {
        let data = tempfile::tempdir().unwrap();
        let one = write(b"one", data.path()).unwrap();
        assert_eq!(fs::read(&one).unwrap(), b"one");
        // A partial file.
        fs::write(&one, b"o").unwrap();
        assert_eq!(write(b"one", data.path()).unwrap(), one);
        assert_eq!(fs::read(&one).unwrap(), b"one");
        write(b"two", data.path()).unwrap();
        assert_eq!(fs::read(&one).unwrap(), b"two");
        let left = fs::read_dir(data.path().join(DIRECTORY)).unwrap().count();
        assert_eq!(left, 1, "only the program is left");
    }

    #[test]
    fn a_data_directory_that_is_a_file_is_an_error() {
        let data = tempfile::tempdir().unwrap();
        let file = data.path().join("file");
        fs::write(&file, "").unwrap();
        let error = exec_program(b"one", &file, std::iter::empty());
        assert_eq!(error.kind(), io::ErrorKind::NotADirectory);
    }

    #[test]
    fn a_program_that_cannot_be_executed_is_removed() {
        let data = tempfile::tempdir().unwrap();
        let new = data.path().join("a/agent");
        let error = exec_program(b"#!/nowhere/interpreter", &new, std::iter::empty());
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(!data.path().join("a").exists());
    }
}
