//! Removes machines: a script that waits for the end of its standard input, whether the
//! test ended well, panicked or was killed.

use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

/// Waits for the end of its input, then undoes what the fixtures have made.
const SCRIPT: &str = include_str!("reaper.sh");

/// See the [module](self). Dropping it takes the machine away and waits for that.
#[derive(Debug)]
pub(super) struct Reaper {
    child: Child,
    alive: Option<ChildStdin>,
}

impl Reaper {
    /// Takes away a network namespace.
    pub(super) fn of_network(name: &str) -> Self {
        Self::start(&["network", name])
    }

    /// Takes away a containerd and all that it runs.
    pub(super) fn of_containerd(directory: &Path) -> Self {
        let directory = directory.to_str().expect("temporary directories are text");
        Self::start(&["containerd", directory])
    }

    /// Unmounts what a directory shows.
    pub(super) fn of_mount(directory: &Path) -> Self {
        let directory = directory.to_str().expect("temporary directories are text");
        Self::start(&["mount", directory])
    }

    fn start(arguments: &[&str]) -> Self {
        // A session of its own: Ctrl-C at the terminal ends the tests, and then it has work to do.
        let child = Command::new("setsid")
            .args(["sh", "-c", SCRIPT, "reaper"])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let mut child = child.expect("setsid and sh can be run");
        let alive = child.stdin.take();
        Self { child, alive }
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        drop(self.alive.take());
        // It has been told; that it cannot be waited for changes nothing.
        let _ended = self.child.wait();
    }
}
