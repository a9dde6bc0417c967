//! A real kubectl of a given version, pointed at one server, with a home and a cache of its own (its
//! discovery cache would otherwise carry one test's server into the next).

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// The kubectls that `scripts/kubectls.sh` provides: the oldest served, a recent one, and the newest to be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// Debian 12's.
    V1_20,
    /// Debian 13's, or any newer one.
    V1_32,
    /// Debian 14's, or any newer one.
    V1_36,
}

impl Version {
    /// All, oldest first.
    pub const ALL: [Self; 3] = [Self::V1_20, Self::V1_32, Self::V1_36];

    /// As people write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::V1_20 => "1.20",
            Self::V1_32 => "1.32",
            Self::V1_36 => "1.36",
        }
    }

    /// Where the binary is. Panics where it was not fetched: a missing kubectl is a failure, never a
    /// reason to skip.
    pub fn path(self) -> PathBuf {
        let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools");
        let path = tools.join(format!("kubectl-{}", self.name()));
        path.canonicalize()
            .unwrap_or_else(|_| panic!("{} is missing: run scripts/kubectls.sh", path.display()))
    }
}

/// What a command said.
#[derive(Debug)]
pub struct Answer {
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
    /// Its exit code; -1 where a signal ended it.
    pub code: i32,
}

impl Answer {
    /// Standard output of a command that had to succeed.
    pub fn ok(self) -> String {
        assert_eq!(
            self.code, 0,
            "the command failed: {}{}",
            self.stdout, self.stderr
        );
        self.stdout
    }
}

/// One kubectl for one server.
#[derive(Debug)]
pub struct Kubectl {
    binary: PathBuf,
    kubeconfig: PathBuf,
    home: TempDir,
}

impl Kubectl {
    /// A kubectl of this version that reads this kubeconfig.
    pub fn new(version: Version, kubeconfig: &Path) -> Self {
        let home = TempDir::new().expect("a temporary directory can be made");
        Self {
            binary: version.path(),
            kubeconfig: kubeconfig.to_owned(),
            home,
        }
    }

    /// The command, without arguments and with inherited streams.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .arg("--cache-dir")
            .arg(self.home.path().join("cache"))
            .env("HOME", self.home.path());
        command
    }

    /// Runs it with arguments and no input.
    pub fn run<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Answer {
        self.run_with_input(arguments, "")
    }

    /// Runs it with arguments and text on its standard input.
    pub fn run_with_input<S: AsRef<OsStr>>(&self, arguments: &[S], input: &str) -> Answer {
        let mut child = self
            .command()
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("kubectl can be started");
        let mut stdin = child.stdin.take().expect("stdin was piped");
        // A kubectl that refuses its flags ends without reading: that is its answer, not a fault here.
        let _unread = stdin.write_all(input.as_bytes());
        drop(stdin);
        let output = child.wait_with_output().expect("kubectl can be waited for");
        Answer {
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            code: output.status.code().unwrap_or(-1),
        }
    }

    /// What `kubectl get` prints of objects, as JSON, or else its standard error.
    pub fn get(&self, what: &[&str]) -> Result<Value, String> {
        let answer = self.run(&[&["get", "-o", "json"], what].concat());
        if answer.code == 0 {
            let objects = serde_json::from_str(&answer.stdout);
            return Ok(objects.expect("kubectl prints JSON"));
        }
        Err(answer.stderr)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_versions_are_there_and_are_what_they_say() {
        for (version, least, most) in [
            (Version::V1_20, 20, 20),
            (Version::V1_32, 32, u32::MAX),
            (Version::V1_36, 36, u32::MAX),
        ] {
            let kubectl = Kubectl::new(version, Path::new("/nonexistent"));
            let answer = kubectl.run(&["version", "--client", "-o", "json"]).ok();
            let answer: Value = serde_json::from_str(&answer).unwrap();
            let minor = answer["clientVersion"]["minor"]
                .as_str()
                .unwrap()
                .parse()
                .unwrap();
            assert!(
                (least..=most).contains(&minor),
                "{}: {minor}",
                version.name()
            );
        }
    }
}
