//! The version of what an agent keeps in its data directory. An agent refuses a directory that a newer one has used, instead of
//! misreading its pods. Agents of 0.1 neither wrote nor read it.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::files::if_found;

/// In the data directory.
pub(crate) const FILE: &str = "version.json";
/// The file while it is being written.
pub(crate) const NEW_FILE: &str = "version.new";

/// Raise it when agents up to now would misread what is kept from now on, and read what they kept.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Record {
    version: u32,
}

#[derive(Debug, thiserror::Error)]
pub enum DataVersionError {
    #[error(
        "a newer agent has used {}: its data has version {found}, this program knows versions up to {VERSION}; use the newer \
         program",
        dir.display()
    )]
    Newer { dir: PathBuf, found: u32 },
    #[error(
        "cannot use {}, which has the version of this agent's data: {source}; if no newer agent has used the directory, delete \
         that file",
        path.display()
    )]
    File { path: PathBuf, source: io::Error },
}

/// Fails if a newer agent has used the directory.
pub fn check(dir: &Path) -> Result<(), DataVersionError> {
    read(dir).map(drop)
}

/// [`check`]s the directory, and marks it as used by this version. Call it before anything is read or written.
pub fn record(dir: &Path) -> Result<(), DataVersionError> {
    if read(dir)? == Some(VERSION) {
        return Ok(());
    }
    write(dir).map_err(at(&dir.join(FILE)))
}

fn read(dir: &Path) -> Result<Option<u32>, DataVersionError> {
    let path = dir.join(FILE);
    let text = if_found(std::fs::read(&path)).map_err(at(&path))?;
    let record = text.map(|text| serde_json::from_slice::<Record>(&text));
    let record = record.transpose().map_err(io::Error::from);
    match record.map_err(at(&path))? {
        Some(Record { version: found }) if found > VERSION => {
            let dir = dir.to_owned();
            Err(DataVersionError::Newer { dir, found })
        }
        record => Ok(record.map(|record| record.version)),
    }
}

/// Survives a power failure once this has returned.
fn write(dir: &Path) -> io::Result<()> {
    let new = dir.join(NEW_FILE);
    let mut file = std::fs::File::create(&new)?;
    let record = Record { version: VERSION };
    file.write_all(&serde_json::to_vec(&record)?)?;
    file.sync_all()?;
    std::fs::rename(&new, dir.join(FILE))?;
    std::fs::File::open(dir)?.sync_all()
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> DataVersionError {
    let path = path.to_owned();
    |source| DataVersionError::File { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_of_a_newer_agent_is_refused_and_an_older_one_is_marked() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let file = dir.join(FILE);
        check(dir).unwrap();
        assert!(!file.exists(), "a look does not write");
        // Without a version, as of 0.1.
        record(dir).unwrap();
        record(dir).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), r#"{"version":1}"#);

        std::fs::write(&file, r#"{"version":2,"more":true}"#).unwrap();
        for refused in [check(dir), record(dir)] {
            let refused = refused.unwrap_err().to_string();
            let words = "its data has version 2, this program knows versions up to 1";
            assert!(refused.contains(words), "{refused}");
        }
        for damaged in ["", "{}", r#"{"version":"1"}"#] {
            std::fs::write(&file, damaged).unwrap();
            let refused = record(dir).unwrap_err().to_string();
            assert!(refused.contains("version.json"), "{refused}");
            assert_eq!(std::fs::read_to_string(&file).unwrap(), damaged);
        }
    }
}
