//! The server under measurement: the real binary as a child process, on a data directory of its own
//! and a free port. What it costs is read from `/proc`.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::client::Target;

/// From SIGTERM to the end of the process.
const STOP: Duration = Duration::from_secs(30);
/// The kernel counts processor time in hundredths of a second (`USER_HZ`).
const TICK: Duration = Duration::from_millis(10);

/// A running `kennel server` or `kennel up`.
pub(crate) struct Server {
    child: Child,
    /// Kept open: a server whose output nobody takes would not be the one people run.
    _stdout: BufReader<ChildStdout>,
    data: TempDir,
    binary: PathBuf,
    verb: &'static str,
    options: Vec<String>,
    address: String,
    /// From the start of the process to the line that says where it listens.
    pub(super) started_in: Duration,
}

impl Server {
    /// Starts the binary beside this program on an empty directory, on the disk that holds it.
    pub(super) fn start() -> Result<Self> {
        Self::start_with(|_| Ok(Vec::new()))
    }

    /// The same with all controllers.
    pub(super) fn up() -> Result<Self> {
        let (binary, data) = prepare()?;
        // This machine is not to be a node: it would count what it runs.
        let alone = ["--nodes", "0"].map(str::to_owned);
        Self::launch(binary, data, "up", alone.to_vec())
    }

    /// The same with further options, which may name files in its data directory.
    pub(crate) fn up_with(options: impl FnOnce(&Path) -> Result<Vec<String>>) -> Result<Self> {
        let (binary, data) = prepare()?;
        let options = options(data.path())?;
        Self::launch(binary, data, "up", options)
    }

    /// Starts it with further options, which may name files in its data directory.
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
        let begin = Instant::now();
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
        let started_in = begin.elapsed();
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

    /// How to reach it.
    pub(super) fn target(&self) -> Result<Target> {
        Target::new(&self.address, &self.data.path().join("admin.kubeconfig"))
    }

    /// The program.
    pub(super) fn binary(&self) -> &Path {
        &self.binary
    }

    /// Its data directory.
    pub(crate) fn data_dir(&self) -> &Path {
        self.data.path()
    }

    /// Stops it in order and starts it again on the same directory.
    pub(super) fn restart(mut self) -> Result<Self> {
        self.stop()?;
        let elsewhere = TempDir::new()?;
        let data = std::mem::replace(&mut self.data, elsewhere);
        Self::launch(self.binary.clone(), data, self.verb, self.options.clone())
    }

    /// `kennel bench` against it, and of it: what it prints for programs.
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
        let deadline = Instant::now() + STOP;
        while self.child.try_wait()?.is_none() {
            ensure!(Instant::now() < deadline, "no end after SIGTERM");
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Resident memory, in bytes.
    pub(super) fn resident(&self) -> Result<u64> {
        resident(&self.child.id().to_string())
    }

    /// Processor time used so far, user and system together.
    pub(super) fn processor_time(&self) -> Result<Duration> {
        processor_time(&self.child.id().to_string())
    }
}

/// The binary beside this program, and an empty directory on the disk that holds it.
fn prepare() -> Result<(PathBuf, TempDir)> {
    let this = std::env::current_exe()?;
    let home = this.parent().context("this program lies in a directory")?;
    let binary = home.join("kennel");
    ensure!(binary.exists(), "build {} first", binary.display());
    // Not /tmp: that may be memory, where a sync costs nothing and proves nothing.
    let data = TempDir::with_prefix_in("bench-", home)?;
    Ok((binary, data))
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already, which is what is asked for.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// Processor time of a process (`self` for this one).
pub(super) fn processor_time(pid: &str) -> Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name, in parentheses, may hold anything; the numbers follow it.
    let (_, rest) = stat.rsplit_once(')').context("no name in stat")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|f| f.parse::<u32>().ok());
    let (user, system) = ticks(11).zip(ticks(12)).context("no times in stat")?;
    Ok(TICK * (user + system))
}

/// Processor time the whole machine has used so far, other people's work included.
pub(super) fn machine_time() -> Result<Duration> {
    let stat = fs::read_to_string("/proc/stat")?;
    let line = stat.lines().next().context("an empty /proc/stat")?;
    let ticks: Vec<u32> = line
        .split_whitespace()
        .filter_map(|f| f.parse().ok())
        .collect();
    // user nice system idle iowait irq softirq steal: all but the two that wait
    let busy = ticks
        .iter()
        .take(8)
        .enumerate()
        .filter(|(at, _)| !matches!(at, 3 | 4));
    Ok(TICK * busy.map(|(_, ticks)| ticks).sum::<u32>())
}

/// The resident memory of a process, in bytes.
pub(super) fn resident(process: &str) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|l| l.trim().trim_end_matches(" kB").parse::<u64>().ok());
    Ok(1024 * kibibytes.context("no VmRSS")?)
}
