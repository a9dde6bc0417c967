//! The machine's capacity, used while the Node object does not have it.

use serde_json::{Value, json};

/// In bytes; 0 if unknown.
pub(super) fn memory() -> u64 {
    let info = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    mem_total(&info)
}

fn mem_total(info: &str) -> u64 {
    let line = info.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix("kB"));
    let kilobytes = kilobytes.and_then(|number| number.trim().parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

/// In the format of a node's status.
pub(super) fn resources() -> Value {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    json!({"cpu": cpus.to_string(), "memory": memory().to_string()})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_parsed_from_meminfo() {
        assert_eq!(
            mem_total("MemTotal:       24682416 kB\nMemFree: 1 kB\n"),
            25_274_793_984
        );
        assert_eq!(mem_total("nothing\n"), 0);
        assert!(memory() > 0);
    }
}
