//! What the page's own thread costs, from `/proc`.

use std::fs;
use std::time::Duration;

use crate::Browser;

/// Of `/proc/PID/stat`: a hundredth of a second on every Linux.
const TICK: Duration = Duration::from_millis(10);

impl Browser {
    /// Processor time of the main threads of all pages of this browser: scripts, styles, layout and painting.
    pub fn main_thread_time(&self) -> Duration {
        let mut found = Duration::ZERO;
        let mut parents = vec![self.driver.pid()];
        let processes = processes();
        while let Some(parent) = parents.pop() {
            for (pid, _) in processes.iter().filter(|(_, of)| *of == parent) {
                parents.push(*pid);
                let command = fs::read_to_string(format!("/proc/{pid}/cmdline"));
                if command.is_ok_and(|line| line.contains("--type=renderer")) {
                    // The first thread of a process has its number.
                    found += thread_time(*pid, *pid).unwrap_or_default();
                }
            }
        }
        found
    }
}

/// All processes with their parents.
fn processes() -> Vec<(u32, u32)> {
    let entries = fs::read_dir("/proc").expect("/proc can be read").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let parent = |pid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Some((pid, field(&stat, 1)?))
    };
    pids.filter_map(parent).collect()
}

fn thread_time(pid: u32, thread: u32) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/task/{thread}/stat")).ok()?;
    Some(TICK * (field(&stat, 11)? + field(&stat, 12)?))
}

/// A field after the name, which is in parentheses and may contain anything.
fn field(stat: &str, number: usize) -> Option<u32> {
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split(' ').nth(number)?.parse().ok()
}
