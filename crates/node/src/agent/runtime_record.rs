//! The record of a node's runtime, in its data directory. The agent chooses a runtime once; later starts use the recorded
//! one, so that a container runtime whose socket is missing at boot is waited for instead of replaced.

use std::fmt;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::files::if_found;

/// In the data directory.
pub(crate) const FILE: &str = "runtime.json";
/// The file while it is being written.
pub(crate) const NEW_FILE: &str = "runtime.new";

/// See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "runtime", rename_all = "lowercase")]
pub enum RuntimeRecord {
    /// A container runtime at this socket.
    Cri {
        socket: PathBuf,
    },
    Process,
}

/// As the Node's annotation has it.
impl fmt::Display for RuntimeRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cri { socket } => write!(f, "cri unix://{}", socket.display()),
            Self::Process => f.write_str("process"),
        }
    }
}

/// A record that cannot be read must not be replaced: the other runtime could have pods of this node.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot read which runtime this node uses from {}: {source}; if you know it, write it there \
     ({{\"runtime\": \"process\"}} or {{\"runtime\": \"cri\", \"socket\": PATH}})",
    path.display()
)]
pub struct RuntimeRecordError {
    path: PathBuf,
    source: io::Error,
}

impl RuntimeRecord {
    /// The record in a data directory, if there is one.
    pub fn read(data: &Path) -> Result<Option<Self>, RuntimeRecordError> {
        let path = data.join(FILE);
        let read = if_found(std::fs::read(&path));
        let parsed = read.and_then(|text| {
            let parsed = text.map(|text| serde_json::from_slice(&text)).transpose();
            parsed.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
        });
        parsed.map_err(|source| RuntimeRecordError { path, source })
    }

    /// Survives a power failure once this has returned.
    pub fn write(&self, data: &Path) -> io::Result<()> {
        let new = data.join(NEW_FILE);
        let mut file = std::fs::File::create(&new)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        file.sync_all()?;
        std::fs::rename(&new, data.join(FILE))?;
        std::fs::File::open(data)?.sync_all()
    }

    /// Whether both mean the same runtime; a socket may have several paths.
    pub fn is_same(&self, other: &Self) -> bool {
        let socket = |record: &Self| match record {
            Self::Cri { socket } => Some(socket.canonicalize().unwrap_or_else(|_| socket.clone())),
            Self::Process => None,
        };
        self == other || socket(self) == socket(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_back_and_a_damaged_one_is_an_error() {
        let data = tempfile::tempdir().unwrap();
        assert_eq!(RuntimeRecord::read(data.path()).unwrap(), None);
        let socket = data.path().join("containerd.sock");
        let cri = RuntimeRecord::Cri {
            socket: socket.clone(),
        };
        for record in [RuntimeRecord::Process, cri.clone()] {
            record.write(data.path()).unwrap();
            assert_eq!(RuntimeRecord::read(data.path()).unwrap(), Some(record));
        }
        std::fs::write(data.path().join(FILE), "").unwrap();
        let damaged = RuntimeRecord::read(data.path()).unwrap_err().to_string();
        assert!(damaged.contains("runtime.json"), "{damaged}");

        std::fs::write(&socket, "").unwrap();
        let link = data.path().join("link.sock");
        std::os::unix::fs::symlink(&socket, &link).unwrap();
        assert!(cri.is_same(&RuntimeRecord::Cri { socket: link }));
        assert!(!cri.is_same(&RuntimeRecord::Process));
    }
}
