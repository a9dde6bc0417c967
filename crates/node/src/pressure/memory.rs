//! Available memory: the capacity without the working set (memory in use that cannot be reclaimed).
//!
//! If a cgroup limits the agent and its pods, that limit counts.

use std::fs;
use std::path::Path;

use kennel_core::pod::eviction::Reading;
use kennel_core::procfs::memory_bytes;

/// Directory, usage file, limit file and the name of reclaimable pages in `memory.stat`, for cgroup v2 and v1.
const CGROUPS: [[&str; 4]; 2] = [
    [
        "/sys/fs/cgroup",
        "memory.current",
        "memory.max",
        "inactive_file ",
    ],
    [
        "/sys/fs/cgroup/memory",
        "memory.usage_in_bytes",
        "memory.limit_in_bytes",
        "total_inactive_file ",
    ],
];

pub fn read() -> Option<Reading> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
    let machine = of_machine(&meminfo)?;
    let limited = CGROUPS.iter().find_map(|[dir, usage, limit, reclaimable]| {
        let read = |name: &str| fs::read_to_string(Path::new(dir).join(name)).ok();
        let (usage, limit) = (read(usage)?, read(limit)?);
        of_cgroup(&usage, &limit, &read("memory.stat")?, reclaimable)
    });
    let limited = limited.filter(|limited| limited.capacity < machine.capacity);
    let all = [Some(machine), limited].into_iter().flatten();
    all.min_by_key(|reading| reading.available)
}

/// Free process ids.
pub fn pids() -> Option<Reading> {
    let number = |path: &str| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let max = number("/proc/sys/kernel/pid_max")?.min(number("/proc/sys/kernel/threads-max")?);
    // `0.10 0.20 0.30 2/345 6789`: 2 of 345 threads run.
    let load = fs::read_to_string("/proc/loadavg").ok()?;
    let (_, threads) = load.split(' ').nth(3)?.split_once('/')?;
    Some(Reading {
        available: max.saturating_sub(threads.parse().ok()?),
        capacity: max,
    })
}

/// None if the cgroup has no limit.
fn of_cgroup(usage: &str, limit: &str, stat: &str, reclaimable: &str) -> Option<Reading> {
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let reclaimable = stat
        .lines()
        .find_map(|line| line.strip_prefix(reclaimable))?;
    let capacity = number(limit)?;
    let working_set = number(usage)?.saturating_sub(number(reclaimable)?);
    Some(Reading {
        available: capacity.saturating_sub(working_set),
        capacity,
    })
}

fn of_machine(meminfo: &str) -> Option<Reading> {
    let capacity = memory_bytes(meminfo, "MemTotal")?;
    let used = capacity.saturating_sub(memory_bytes(meminfo, "MemFree")?);
    let working_set = used.saturating_sub(memory_bytes(meminfo, "Inactive(file)")?);
    Some(Reading {
        available: capacity.saturating_sub(working_set),
        capacity,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMINFO: &str = "MemTotal:        1000 kB\nMemFree:          100 kB\nMemAvailable:     500 kB\n\
        Inactive:         300 kB\nInactive(file):   200 kB\n";

    fn reading(available: u64, capacity: u64) -> Reading {
        Reading {
            available: available << 10,
            capacity: capacity << 10,
        }
    }

    #[test]
    fn reclaimable_memory_is_available() {
        assert_eq!(of_machine(MEMINFO), Some(reading(300, 1000)));
        assert_eq!(of_machine("nonsense"), None);
        let stat = "cache 5\ntotal_inactive_file 102400\n";
        let check = |limit: &str, expected| {
            let found = of_cgroup("512000\n", limit, stat, "total_inactive_file ");
            assert_eq!(found, expected, "{limit}");
        };
        check("819200\n", Some(reading(400, 800)));
        check("max\n", None);
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
