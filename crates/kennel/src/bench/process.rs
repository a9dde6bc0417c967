//! CPU time and memory of the measured processes, read from `/proc`.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result};
use kennel_core::procfs;

#[derive(Debug)]
pub(super) struct Process {
    pub(super) pid: u32,
    pub(super) command: String,
    /// The largest sample of resident memory; `None` if the kernel tracks the peak (`VmHWM`).
    sampled_peak: Option<u64>,
}

impl Process {
    pub(super) fn find(pid: u32) -> Result<Self> {
        let command = fs::read_to_string(format!("/proc/{pid}/cmdline"))
            .with_context(|| format!("--pid {pid}: there is no such process"))?;
        Ok(Self {
            pid,
            command: command.replace('\0', " ").trim().to_owned(),
            sampled_peak: None,
        })
    }

    /// This process.
    pub(super) fn this() -> Result<Self> {
        Self::find(std::process::id())
    }

    /// Resets the peak. The kernel allows that only for processes of the same user; others are sampled.
    pub(super) fn reset_peak(&mut self) {
        let reset = fs::write(format!("/proc/{}/clear_refs", self.pid), "5");
        self.sampled_peak = match reset {
            Ok(()) => None,
            Err(_) => Some(0),
        };
    }

    /// Samples the memory, if the kernel's peak is not usable.
    pub(super) fn sample(&mut self) {
        if let Some(peak) = &mut self.sampled_peak
            && let Ok(now) = memory(self.pid, "VmRSS")
        {
            *peak = now.max(*peak);
        }
    }

    /// Peak resident memory since the reset, in bytes, and where the number is from.
    pub(super) fn peak(&self) -> Result<(u64, &'static str)> {
        match self.sampled_peak {
            Some(peak) => Ok((peak.max(memory(self.pid, "VmRSS")?), "VmRSS, sampled")),
            None => Ok((memory(self.pid, "VmHWM")?, "VmHWM")),
        }
    }

    pub(super) fn cpu_time(&self) -> Result<Duration> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid));
        let stat = stat.with_context(|| format!("process {} has exited", self.pid))?;
        procfs::cpu_time(&stat).with_context(|| format!("cannot parse /proc/{}/stat", self.pid))
    }
}

fn memory(pid: u32, field: &str) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"));
    let status = status.with_context(|| format!("process {pid} has exited"))?;
    procfs::memory_bytes(&status, field)
        .with_context(|| format!("no {field} in /proc/{pid}/status"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_of_this_process_can_be_reset_and_read() {
        let mut this = Process::this().unwrap();
        this.reset_peak();
        this.sample();
        let (peak, source) = this.peak().unwrap();
        assert!(peak > 1 << 16, "{peak} from {source}");
        this.cpu_time().unwrap();
    }

    #[test]
    fn a_missing_process_is_named_in_the_error() {
        let error = Process::find(u32::MAX).unwrap_err().to_string();
        assert_eq!(
            error,
            format!("--pid {}: there is no such process", u32::MAX)
        );
    }
}
