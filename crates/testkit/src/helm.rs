//! A real Helm, pointed at one server, with a home of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::Answer;

/// The Helm that `scripts/helm.sh` provides, for one server.
#[derive(Debug)]
pub struct Helm {
    kubeconfig: PathBuf,
    home: TempDir,
}

impl Helm {
    pub fn new(kubeconfig: &Path) -> Self {
        Self {
            kubeconfig: kubeconfig.to_owned(),
            home: TempDir::new().expect("a temporary directory can be made"),
        }
    }

    /// Where the binary is. Panics where it was not fetched.
    fn path() -> PathBuf {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools/helm");
        path.canonicalize()
            .unwrap_or_else(|_| panic!("{} is missing: run scripts/helm.sh", path.display()))
    }

    /// Runs it with arguments and no input.
    pub fn run(&self, arguments: &[&str]) -> Answer {
        let output = Command::new(Self::path())
            .args(arguments)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("HOME", self.home.path())
            .env_remove("KUBERNETES_SERVICE_HOST")
            .stdin(Stdio::null())
            .output()
            .expect("helm can be started");
        Answer {
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            code: output.status.code().unwrap_or(-1),
        }
    }
}
