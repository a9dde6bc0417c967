//! A machine to install packages on: the files of this one under a layer of its own, with its own processes, mounts,
//! network, and a real systemd. It is gone, with all that runs on it, when it is dropped or the test ends in any other
//! way.

use std::fs;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Output, Stdio};

use kennel_testkit::{Deadline, Version, eventually};
use tempfile::TempDir;

use crate::packages::PATIENCE;

const HOLDER: &str = include_str!("holder.sh");
const SCRIPT: &str = include_str!("machine.sh");
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// See the [module](self).
pub(crate) struct Machine {
    holder: Child,
    /// The machine is there as long as this is open.
    alive: Option<ChildStdin>,
    /// A process that shares everything with the machine but its process ids, of which its children are.
    pid: String,
    dir: TempDir,
}

impl Machine {
    /// A machine that finds these packages below `/packages`.
    pub(crate) fn new(packages: &Path) -> Self {
        let dir = TempDir::new().unwrap();
        for name in ["groups", "layers"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        let log = fs::File::create(dir.path().join("log")).unwrap();
        // A session of its own: Ctrl-C at the terminal ends the tests, and then it has work to do.
        let mut holder = Command::new("setsid")
            .args(["unshare", "--mount", "--propagation", "private"])
            .args(["sh", "-c", HOLDER, "holder"])
            .arg(dir.path())
            .arg(SCRIPT)
            .arg(dir.path().join("layers"))
            .args([packages, &Version::V1_32.path()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let alive = holder.stdin.take();
        let mut machine = Self {
            holder,
            alive,
            pid: String::new(),
            dir,
        };
        machine.pid = machine.wait(|machine| {
            let pid = fs::read_to_string(machine.dir.path().join("pid"));
            let pid = pid.map_err(|error| error.to_string())?;
            (!pid.is_empty()).then_some(pid).ok_or_else(String::new)
        });
        let pid = machine.pid.trim().to_owned();
        machine.pid = pid;
        machine.until("systemctl is-system-running");
        machine
    }

    fn wait<T>(&self, look: impl Fn(&Self) -> Result<T, String>) -> T {
        eventually(Deadline::seconds(PATIENCE), || {
            let log = || fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
            look(self).map_err(|why| format!("{why}\n{}", log()))
        })
    }

    /// What a shell on it says and how it ends.
    pub(crate) fn try_to(&self, script: &str) -> Output {
        let of = |namespace: &str| format!("/proc/{}/ns/{namespace}", self.pid);
        Command::new("nsenter")
            .args(["--target", &self.pid, "--root"])
            .arg(format!("--mount={}", of("mnt")))
            .arg(format!("--net={}", of("net")))
            .arg(format!("--uts={}", of("uts")))
            .arg(format!("--pid={}", of("pid_for_children")))
            .args(["sh", "-c", script])
            .env_clear()
            .envs([("PATH", PATH), ("HOME", "/root"), ("LC_ALL", "C.UTF-8")])
            .env("DEBIAN_FRONTEND", "noninteractive")
            .env("KUBECONFIG", "/var/lib/kennel/server/admin.kubeconfig")
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// What a shell on it says, which must succeed: both its streams.
    pub(crate) fn run(&self, script: &str) -> String {
        let output = self.try_to(script);
        assert!(output.status.success(), "{}", self.story(script, &output));
        said(&output)
    }

    /// Waits until a command succeeds.
    pub(crate) fn until(&self, script: &str) -> String {
        self.wait(|_| {
            let output = self.try_to(script);
            let told = || self.story(script, &output);
            output
                .status
                .success()
                .then(|| said(&output))
                .ok_or_else(told)
        })
    }

    /// What was done, what came of it, and what the services said lately.
    fn story(&self, script: &str, output: &Output) -> String {
        let journal = self.try_to("journalctl --no-pager -n 30 2>/dev/null");
        format!("$ {script}\n{}\n{}", said(output), said(&journal))
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        drop(self.alive.take());
        let ended = self.holder.wait();
        ended.expect("a child can be waited for");
    }
}

fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}
