//! How much memory can still be had: all there is, without what is in use and cannot be given back.
//!
//! What is in use is told by the cgroup of everything where it says so (version 1), else by `/proc/meminfo`.

use std::fs;
use std::path::Path;

use kennel_core::pod::evict::Reading;

/// Measures this machine.
pub fn read() -> Option<Reading> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
    let cgroup = Path::new("/sys/fs/cgroup/memory");
    let usage = fs::read_to_string(cgroup.join("memory.usage_in_bytes"));
    let stat = fs::read_to_string(cgroup.join("memory.stat"));
    let limit = fs::read_to_string(cgroup.join("memory.limit_in_bytes"));
    match (usage, stat, limit) {
        (Ok(usage), Ok(stat), Ok(limit)) => of_cgroup(&meminfo, &usage, &stat, &limit),
        _ => of_machine(&meminfo),
    }
}

/// Process ids that can still be had.
pub fn pids() -> Option<Reading> {
    let number = |path: &str| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let most = number("/proc/sys/kernel/pid_max")?.min(number("/proc/sys/kernel/threads-max")?);
    // `0.10 0.20 0.30 2/345 6789`: of 345 threads, 2 run.
    let load = fs::read_to_string("/proc/loadavg").ok()?;
    let (_, threads) = load.split(' ').nth(3)?.split_once('/')?;
    Some(Reading {
        available: most.saturating_sub(threads.parse().ok()?),
        capacity: most,
    })
}

fn of_cgroup(meminfo: &str, usage: &str, stat: &str, limit: &str) -> Option<Reading> {
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let idle = stat
        .lines()
        .find_map(|line| line.strip_prefix("total_inactive_file "));
    let capacity = kibibytes(meminfo, "MemTotal")?.min(number(limit)?);
    let held = number(usage)?.saturating_sub(number(idle?)?);
    Some(Reading {
        available: capacity.saturating_sub(held),
        capacity,
    })
}

fn of_machine(meminfo: &str) -> Option<Reading> {
    let capacity = kibibytes(meminfo, "MemTotal")?;
    let used = capacity.saturating_sub(kibibytes(meminfo, "MemFree")?);
    let held = used.saturating_sub(kibibytes(meminfo, "Inactive(file)")?);
    Some(Reading {
        available: capacity.saturating_sub(held),
        capacity,
    })
}

/// A line of `/proc/meminfo`, in bytes.
fn kibibytes(meminfo: &str, name: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let number = line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?;
    Some(number << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMINFO: &str = "MemTotal:        1000 kB\nMemFree:          100 kB\nMemAvailable:     500 kB\n\
        Inactive:         300 kB\nInactive(file):   200 kB\n";

    fn reading(available: u64, capacity: u64) -> Option<Reading> {
        Some(Reading {
            available: available << 10,
            capacity: capacity << 10,
        })
    }

    #[test]
    fn what_can_be_given_back_is_available() {
        assert_eq!(of_machine(MEMINFO), reading(300, 1000));
        assert_eq!(of_machine("nonsense"), None);
        let unlimited = "9223372036854771712\n";
        let stat = "cache 5\ntotal_inactive_file 102400\n";
        assert_eq!(
            of_cgroup(MEMINFO, "512000\n", stat, unlimited),
            reading(600, 1000)
        );
        assert_eq!(
            of_cgroup(MEMINFO, "512000\n", stat, "819200\n"),
            reading(400, 800)
        );
    }

    #[test]
    fn this_machine_can_be_measured() {
        for reading in [read().unwrap(), pids().unwrap()] {
            assert!(
                reading.available > 0 && reading.available <= reading.capacity,
                "{reading:?}"
            );
        }
    }
}
