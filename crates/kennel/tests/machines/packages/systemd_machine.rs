//! A virtual machine to install packages on: this machine's files under an overlay, with namespaces and a systemd of its
//! own. It is removed when it is dropped, or when the test process ends.

use std::fs;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Output, Stdio};

use kennel_testkit::{Deadline, Version, eventually};
use tempfile::TempDir;

use crate::packages::TIMEOUT_SECONDS;

const HOLD_SCRIPT: &str = include_str!("hold_machine.sh");
const START_SCRIPT: &str = include_str!("start_machine.sh");
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

pub(crate) struct Machine {
    holder: Child,
    /// The machine runs while this is open.
    keep_alive: Option<ChildStdin>,
    /// A process in the machine's namespaces, but for the PID namespace, which only its children are in.
    pid: String,
    dir: TempDir,
}

impl Machine {
    /// Starts a machine with these packages in `/packages`.
    pub(crate) fn new(packages: &Path) -> Self {
        let dir = TempDir::new().unwrap();
        for name in ["groups", "layers"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        let log = fs::File::create(dir.path().join("log")).unwrap();
        // A session of its own, so that Ctrl-C does not interrupt its cleanup.
        let mut holder = Command::new("setsid")
            .args(["unshare", "--mount", "--propagation", "private"])
            .args(["sh", "-c", HOLD_SCRIPT, "holder"])
            .arg(dir.path())
            .arg(START_SCRIPT)
            .arg(dir.path().join("layers"))
            .args([packages, &Version::V1_32.path()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let keep_alive = holder.stdin.take();
        let mut machine = Self {
            holder,
            keep_alive,
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

    fn wait<T>(&self, poll: impl Fn(&Self) -> Result<T, String>) -> T {
        eventually(Deadline::seconds(TIMEOUT_SECONDS), || {
            let log = || fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
            poll(self).map_err(|error| format!("{error}\n{}", log()))
        })
    }

    /// Runs a shell script.
    pub(crate) fn try_run(&self, script: &str) -> Output {
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

    /// Runs a shell script, which must succeed; returns stdout and stderr.
    pub(crate) fn run(&self, script: &str) -> String {
        let output = self.try_run(script);
        assert!(
            output.status.success(),
            "{}",
            self.describe(script, &output)
        );
        output_text(&output)
    }

    /// Waits until a command succeeds.
    pub(crate) fn until(&self, script: &str) -> String {
        self.wait(|_| {
            let output = self.try_run(script);
            let error = || self.describe(script, &output);
            output
                .status
                .success()
                .then(|| output_text(&output))
                .ok_or_else(error)
        })
    }

    /// The script, its output, and the end of the journal.
    fn describe(&self, script: &str, output: &Output) -> String {
        let journal = self.try_run("journalctl --no-pager -n 30 2>/dev/null");
        format!(
            "$ {script}\n{}\n{}",
            output_text(output),
            output_text(&journal)
        )
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        drop(self.keep_alive.take());
        let status = self.holder.wait();
        status.expect("cannot wait for the machine's process");
    }
}

fn output_text(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}
