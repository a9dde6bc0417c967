//! The agent's own program, which a release build carries, and becoming it.
//!
//! One binary is installed, and the agent still needs no more memory than an agent needs: see
//! `docs/decisions/0017-the-agent-alone.md`.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Empty where nothing is carried.
const PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/kennel-agent"));
/// Below the agent's data directory.
const PLACE: &str = "bin";
const NAME: &str = "kennel-agent";

/// Becomes the agent's program, put below its data directory, with the words that this one was started with. Comes
/// back if there is none, or if it cannot be: the agent then runs within this program.
pub(crate) fn become_agent(data: &Path) {
    if PROGRAM.is_empty() {
        return;
    }
    let error = become_program(PROGRAM, data, std::env::args_os());
    tracing::warn!(
        "the agent needs more memory than it could: its own program cannot be run below {}: {error}",
        data.display()
    );
}

/// Comes back only with what was in the way.
fn become_program(
    program: &[u8],
    data: &Path,
    mut words: impl Iterator<Item = OsString>,
) -> io::Error {
    let path = match put(program, data) {
        Ok(path) => path,
        Err(error) => return error,
    };
    let mut command = Command::new(path);
    command.arg0(words.next().unwrap_or_else(|| "kennel".into()));
    command.args(words).exec()
}

/// The program as a file. One that is there already is used if it is the same, byte for byte.
fn put(program: &[u8], data: &Path) -> io::Result<PathBuf> {
    let place = data.join(PLACE);
    let path = place.join(NAME);
    if fs::read(&path).is_ok_and(|there| there == program) {
        return Ok(path);
    }
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&place)?;
    // Whole or not at all, whenever the power fails; an agent that runs keeps the file that it was started from.
    let new = place.join(format!("{NAME}.{}", std::process::id()));
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
    fn a_program_is_put_whole_and_replaced_by_another_version() {
        let data = tempfile::tempdir().unwrap();
        let one = put(b"one", data.path()).unwrap();
        assert_eq!(fs::read(&one).unwrap(), b"one");
        // Half of it, as if a disk had lost the rest.
        fs::write(&one, b"o").unwrap();
        assert_eq!(put(b"one", data.path()).unwrap(), one);
        assert_eq!(fs::read(&one).unwrap(), b"one");
        put(b"two", data.path()).unwrap();
        assert_eq!(fs::read(&one).unwrap(), b"two");
        let left = fs::read_dir(data.path().join(PLACE)).unwrap().count();
        assert_eq!(left, 1, "nothing but the program is left");
    }

    #[test]
    fn what_cannot_be_put_comes_back_with_the_reason() {
        let data = tempfile::tempdir().unwrap();
        let file = data.path().join("file");
        fs::write(&file, "").unwrap();
        let error = become_program(b"one", &file, std::iter::empty());
        assert_eq!(error.kind(), io::ErrorKind::NotADirectory);
    }
}
