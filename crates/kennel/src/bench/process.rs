//! What the processes under measurement cost, read from `/proc`.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result};

/// The kernel counts processor time in hundredths of a second (`USER_HZ`).
const TICK: Duration = Duration::from_millis(10);

/// A process that is watched.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) pid: u32,
    /// What it was started as, for people.
    pub(super) command: String,
    /// The most seen resident, if the kernel does not keep count for us.
    sampled: Option<u64>,
}

impl Process {
    /// An error if there is none with this id.
    pub(super) fn find(pid: u32) -> Result<Self> {
        let command = fs::read_to_string(format!("/proc/{pid}/cmdline"))
            .with_context(|| format!("--pid {pid}: there is no such process"))?;
        Ok(Self {
            pid,
            command: command.replace('\0', " ").trim().to_owned(),
            sampled: None,
        })
    }

    /// This program.
    pub(super) fn this() -> Result<Self> {
        Self::find(std::process::id())
    }

    /// From now on counts its peak anew. Whether the kernel does: only for processes of the same user.
    pub(super) fn reset_peak(&mut self) {
        let reset = fs::write(format!("/proc/{}/clear_refs", self.pid), "5");
        self.sampled = match reset {
            Ok(()) => None,
            Err(_) => Some(0),
        };
    }

    /// Looks at its memory, where the kernel keeps no count for us.
    pub(super) fn sample(&mut self) {
        if let Some(most) = &mut self.sampled
            && let Ok(now) = memory(self.pid, "VmRSS:")
        {
            *most = now.max(*most);
        }
    }

    /// The most that was resident since the reset, in bytes, and how that is known.
    pub(super) fn peak(&self) -> Result<(u64, &'static str)> {
        match self.sampled {
            Some(most) => Ok((most.max(memory(self.pid, "VmRSS:")?), "VmRSS, sampled")),
            None => Ok((memory(self.pid, "VmHWM:")?, "VmHWM")),
        }
    }

    /// Processor time used so far, in user space and kernel.
    pub(super) fn processor_time(&self) -> Result<Duration> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid));
        let stat = stat.with_context(|| format!("process {} has ended", self.pid))?;
        parse_times(&stat).with_context(|| format!("/proc/{}/stat makes no sense", self.pid))
    }
}

fn memory(pid: u32, field: &str) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"));
    let status = status.with_context(|| format!("process {pid} has ended"))?;
    parse_memory(&status, field).with_context(|| format!("no {field} in /proc/{pid}/status"))
}

fn parse_memory(status: &str, field: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(1024 * kibibytes)
}

fn parse_times(stat: &str) -> Option<Duration> {
    // The name, in parentheses, may hold anything; the numbers follow it.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut times = rest.split_whitespace().skip(11);
    let mut ticks = || times.next()?.parse::<u32>().ok();
    let (user, system) = (ticks()?, ticks()?);
    Some(TICK * (user + system))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_follow_a_name_that_may_hold_anything() {
        let stat = "12 (a) b (c) S 1 1 1 0 -1 4194560 1 2 3 4 150 25 7 8 20 0 3 0 99\n";
        assert_eq!(parse_times(stat), Some(Duration::from_millis(1_750)));
        assert_eq!(parse_times("12 (a) S 1"), None);
        assert_eq!(parse_times(""), None);
    }

    #[test]
    fn memory_is_in_kibibytes() {
        let status = "Name:\tkennel\nVmHWM:\t   2048 kB\nVmRSS:\t    100 kB\n";
        assert_eq!(parse_memory(status, "VmHWM:"), Some(2 << 20));
        assert_eq!(parse_memory(status, "VmRSS:"), Some(100 << 10));
        assert_eq!(parse_memory("Name:\tkthreadd\n", "VmRSS:"), None);
    }

    #[test]
    fn this_process_has_used_memory_and_can_be_told_to_count_anew() {
        let mut this = Process::this().unwrap();
        this.reset_peak();
        this.sample();
        let (peak, how) = this.peak().unwrap();
        assert!(peak > 1 << 16, "{peak} by {how}");
        this.processor_time().unwrap();
    }

    #[test]
    fn a_process_that_is_not_there_is_named() {
        let error = Process::find(u32::MAX).unwrap_err().to_string();
        assert_eq!(
            error,
            format!("--pid {}: there is no such process", u32::MAX)
        );
    }
}
