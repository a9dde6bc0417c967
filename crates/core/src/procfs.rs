//! Parsers of `/proc` files: the CPU time and memory of a process.

use std::time::Duration;

/// The kernel counts CPU time in hundredths of a second (`USER_HZ`).
pub const TICK: Duration = Duration::from_millis(10);

/// CPU time in user space and kernel, from `/proc/PID/stat`.
pub fn cpu_time(stat: &str) -> Option<Duration> {
    // The name, in parentheses, may contain anything; the numbers follow it.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut times = rest.split_whitespace().skip(11);
    let mut ticks = || times.next()?.parse::<u32>().ok();
    let (user, system) = (ticks()?, ticks()?);
    Some(TICK * (user + system))
}

/// A field in bytes, such as `VmRSS`, from `/proc/PID/status`.
pub fn memory_bytes(status: &str, field: &str) -> Option<u64> {
    let mut values = status.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = values.find(|(name, _)| *name == field)?;
    let kibibytes: u64 = value.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(1024 * kibibytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_follow_a_name_that_may_contain_anything() {
        let stat = "12 (a) b (c) S 1 1 1 0 -1 4194560 1 2 3 4 150 25 7 8 20 0 3 0 99\n";
        assert_eq!(cpu_time(stat), Some(Duration::from_millis(1_750)));
        assert_eq!(cpu_time("12 (a) S 1"), None);
        assert_eq!(cpu_time(""), None);
    }

    #[test]
    fn memory_is_in_kibibytes() {
        let status = "Name:\tkennel\nVmHWM:\t   2048 kB\nVmRSS:\t    100 kB\n";
        assert_eq!(memory_bytes(status, "VmHWM"), Some(2 << 20));
        assert_eq!(memory_bytes(status, "VmRSS"), Some(100 << 10));
        assert_eq!(memory_bytes("Name:\tkthreadd\n", "VmRSS"), None);
    }
}
