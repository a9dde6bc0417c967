//! What this machine has, where the node's object does not say it (yet).

use serde_json::{Value, json};

/// Bytes of memory; 0 if that cannot be found out.
pub(super) fn memory() -> u64 {
    let info = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    total(&info)
}

fn total(info: &str) -> u64 {
    let line = info.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix("kB"));
    let kilobytes = kilobytes.and_then(|number| number.trim().parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

/// As a node's status has it.
pub(super) fn capacity() -> Value {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    json!({"cpu": cpus.to_string(), "memory": memory().to_string()})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_from_the_kernel() {
        assert_eq!(
            total("MemTotal:       24682416 kB\nMemFree: 1 kB\n"),
            25_274_793_984
        );
        assert_eq!(total("nothing\n"), 0);
        assert!(memory() > 0);
    }
}
