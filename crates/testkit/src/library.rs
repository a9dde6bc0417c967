//! Programs that use an official client library of Kubernetes, run against one server.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::Answer;

/// The client libraries that `scripts/clients.sh` provides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    Python,
    JavaScript,
}

impl Library {
    /// Runs a program, which may import the files beside it, as the user of a kubeconfig.
    pub fn run(self, program: &Path, kubeconfig: &Path) -> Answer {
        let place = TempDir::new().expect("a temporary directory can be made");
        let mut command = match self {
            Self::Python => {
                let mut command = Command::new("python3");
                // Compiled modules are kept beside the library, and not beside the program.
                command
                    .env("PYTHONPATH", self.path())
                    .env("PYTHONPYCACHEPREFIX", self.path().join("__pycache__"))
                    .arg(program);
                command
            }
            Self::JavaScript => {
                let mut command = Command::new("node");
                command.arg(beside_modules(program, place.path(), &self.path()));
                command
            }
        };
        let output = command
            .env("KUBECONFIG", kubeconfig)
            .env("HOME", place.path())
            .env_remove("KUBERNETES_SERVICE_HOST")
            .stdin(Stdio::null())
            .output()
            .expect("the program can be started");
        Answer {
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            code: output.status.code().unwrap_or(-1),
        }
    }

    /// Where the library is. Panics where it was not fetched.
    fn path(self) -> PathBuf {
        let name = match self {
            Self::Python => "python-client",
            Self::JavaScript => "javascript-client",
        };
        let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools");
        let path = tools.join(name);
        path.canonicalize()
            .unwrap_or_else(|_| panic!("{} is missing: run scripts/clients.sh", path.display()))
    }
}

/// Copies a program and what it imports to a place where Node.js finds the library: it looks for modules in the
/// directories above a program, and nowhere else.
fn beside_modules(program: &Path, place: &Path, library: &Path) -> PathBuf {
    let modules = place.join("node_modules");
    std::os::unix::fs::symlink(library.join("node_modules"), modules)
        .expect("our own directory can be written");
    let directory = program.parent().expect("a program is in a directory");
    for entry in std::fs::read_dir(directory).expect("the directory can be read") {
        let entry = entry.expect("the directory can be read");
        std::fs::copy(entry.path(), place.join(entry.file_name()))
            .expect("our own directory can be written");
    }
    place.join(program.file_name().expect("a program has a name"))
}
