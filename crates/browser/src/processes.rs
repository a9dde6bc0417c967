//! The processes that belong to a browser, from `/proc`.

use std::fs;
use std::time::Duration;

/// Of `/proc/PID/stat`: a hundredth of a second on every Linux.
const TICK: Duration = Duration::from_millis(10);

/// All processes below one: chromedriver starts Chromium, which starts one for each page, and more.
pub(super) fn below(pid: u32) -> Vec<u32> {
    let all = all();
    let (mut found, mut parents) = (Vec::new(), vec![pid]);
    while let Some(parent) = parents.pop() {
        let children = all.iter().filter(|(_, of)| *of == parent);
        let children: Vec<u32> = children.map(|(child, _)| *child).collect();
        found.extend(&children);
        parents.extend(children);
    }
    found
}

/// Whether it runs pages.
pub(super) fn is_renderer(pid: u32) -> bool {
    let command = fs::read_to_string(format!("/proc/{pid}/cmdline"));
    command.is_ok_and(|line| line.contains("--type=renderer"))
}

/// Processor time of the first thread of a process, which has the process's number.
pub(super) fn main_thread_time(pid: u32) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/task/{pid}/stat")).ok()?;
    Some(TICK * (field(&stat, 11)? + field(&stat, 12)?))
}

/// All processes with their parents.
fn all() -> Vec<(u32, u32)> {
    let entries = fs::read_dir("/proc").expect("/proc can be read").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let parent = |pid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Some((pid, field(&stat, 1)?))
    };
    pids.filter_map(parent).collect()
}

/// A field after the name, which is in parentheses and may contain anything.
fn field(stat: &str, number: usize) -> Option<u32> {
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split(' ').nth(number)?.parse().ok()
}
