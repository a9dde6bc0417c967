//! The measured server: the release binary as a child process, with a data directory of its own and a free port. CPU
//! time and memory are read from `/proc`.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use kennel_core::procfs::{self, TICK};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::client::Target;

const STOP_TIMEOUT: Duration = Duration::from_secs(30);

/// A running `kennel server` or `kennel up`.
pub(crate) struct Server {
    child: Child,
    /// Kept open, so that the server can print.
    _stdout: BufReader<ChildStdout>,
    data: TempDir,
    binary: PathBuf,
    verb: &'static str,
    options: Vec<String>,
    address: String,
    /// From the start of the process to the line with its address.
    pub(super) started_in: Duration,
}

impl Server {
    /// Starts `kennel server` with an empty data directory.
    pub(super) fn start() -> Result<Self> {
        Self::start_with(|_| Ok(Vec::new()))
    }

    /// Starts `kennel up` without nodes.
    pub(super) fn up() -> Result<Self> {
        let (binary, data) = prepare()?;
        let options = ["--nodes", "0"].map(str::to_owned);
        Self::launch(binary, data, "up", options.to_vec())
    }

    /// Starts `kennel up` with options, which may name files in the data directory.
    pub(crate) fn up_with(options: impl FnOnce(&Path) -> Result<Vec<String>>) -> Result<Self> {
        let (binary, data) = prepare()?;
        let options = options(data.path())?;
        Self::launch(binary, data, "up", options)
    }

    /// Starts `kennel server` with options, which may name files in the data directory.
    pub(super) fn start_with(options: impl FnOnce(&Path) -> Result<Vec<String>>) -> Result<Self> {
        let (binary, data) = prepare()?;
        let options = options(data.path())?;
        Self::launch(binary, data, "server", options)
    }

    fn launch(
        binary: PathBuf,
        data: TempDir,
        verb: &'static str,
        options: Vec<String>,
    ) -> Result<Self> {
        let started_at = Instant::now();
        let mut child = Command::new(&binary)
            .args([verb, "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(data.path())
            .args(&options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(data.path().join("stderr.log"))?)
            .spawn()?;
        let stdout = child.stdout.take().context("stdout was piped")?;
        let mut stdout = BufReader::new(stdout);
        let mut line = String::new();
        stdout.read_line(&mut line)?;
        let started_in = started_at.elapsed();
        let Some((_, address)) = line.split_once("https://") else {
            bail!("no address in {line:?}");
        };
        Ok(Self {
            child,
            _stdout: stdout,
            data,
            binary,
            verb,
            options,
            address: address.trim().to_owned(),
            started_in,
        })
    }

    pub(super) fn target(&self) -> Result<Target> {
        Target::new(&self.address, &self.data.path().join("admin.kubeconfig"))
    }

    pub(crate) fn binary(&self) -> &Path {
        &self.binary
    }

    pub(crate) fn data_dir(&self) -> &Path {
        self.data.path()
    }

    /// What it has logged.
    pub(super) fn log(&self) -> Result<String> {
        Ok(fs::read_to_string(self.data.path().join("stderr.log"))?)
    }

    /// Stops it with SIGTERM and starts it again with the same data directory.
    pub(super) fn restart(mut self) -> Result<Self> {
        self.stop()?;
        let unused = TempDir::new()?;
        let data = std::mem::replace(&mut self.data, unused);
        Self::launch(self.binary.clone(), data, self.verb, self.options.clone())
    }

    /// Runs `kennel bench` against it; returns its JSON output.
    pub(super) fn bench(&self, nodes: u32, options: &[&str]) -> Result<serde_json::Value> {
        let output = Command::new(&self.binary)
            .args(["bench", "--output=json", "--kubeconfig"])
            .arg(self.data.path().join("admin.kubeconfig"))
            .args(["--nodes", &nodes.to_string()])
            .args(["--pid", &self.child.id().to_string()])
            .args(options)
            .stdin(Stdio::null())
            .stderr(File::create(self.data.path().join("bench.log"))?)
            .output()?;
        if !output.status.success() {
            let log = fs::read_to_string(self.data.path().join("bench.log"))?;
            bail!("kennel bench failed:\n{log}");
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    fn stop(&mut self) -> Result<()> {
        kill_process(Pid::from_child(&self.child), Signal::TERM)?;
        let deadline = Instant::now() + STOP_TIMEOUT;
        while self.child.try_wait()?.is_none() {
            ensure!(Instant::now() < deadline, "did not exit after SIGTERM");
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    pub(super) fn resident_bytes(&self) -> Result<u64> {
        resident_bytes(&self.child.id().to_string())
    }

    pub(super) fn cpu_time(&self) -> Result<Duration> {
        cpu_time(&self.child.id().to_string())
    }
}

/// The `kennel` beside this program, and an empty directory on the same disk.
pub(super) fn prepare() -> Result<(PathBuf, TempDir)> {
    let this = std::env::current_exe()?;
    let home = this
        .parent()
        .context("the path of this program has no directory")?;
    let binary = home.join("kennel");
    ensure!(binary.exists(), "build {} first", binary.display());
    // Not in /tmp, which may be a tmpfs, where syncs cost nothing.
    let data = TempDir::with_prefix_in("bench-", home)?;
    Ok((binary, data))
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have exited already.
        let _exited = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// CPU time of a process (`self` for this one).
pub(super) fn cpu_time(pid: &str) -> Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    procfs::cpu_time(&stat).with_context(|| format!("cannot parse /proc/{pid}/stat"))
}

/// CPU time of all processes of the machine.
pub(super) fn machine_cpu_time() -> Result<Duration> {
    let stat = fs::read_to_string("/proc/stat")?;
    let line = stat.lines().next().context("an empty /proc/stat")?;
    let ticks: Vec<u32> = line
        .split_whitespace()
        .filter_map(|f| f.parse().ok())
        .collect();
    // user nice system idle iowait irq softirq steal: all but idle and iowait
    let busy = ticks
        .iter()
        .take(8)
        .enumerate()
        .filter(|(at, _)| !matches!(at, 3 | 4));
    Ok(TICK * busy.map(|(_, ticks)| ticks).sum::<u32>())
}

/// The most memory that a process had resident at once.
pub(super) fn peak_bytes(pid: &str) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    procfs::memory_bytes(&status, "VmHWM").with_context(|| format!("no VmHWM of process {pid}"))
}

/// Resident memory of a process (`self` for this one).
pub(super) fn resident_bytes(pid: &str) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    procfs::memory_bytes(&status, "VmRSS").with_context(|| format!("no VmRSS of process {pid}"))
}
