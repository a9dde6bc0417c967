//! The control files of a group, in versions 1 and 2.

use std::io;
use std::path::Path;

use super::{Kind, Limits};

/// File names and values, in the order to write them.
pub(super) fn limits(kind: &Kind, limits: &Limits) -> Vec<(&'static str, String)> {
    let Limits {
        cpu_shares,
        cpu_period,
        cpu_quota,
        memory,
        pids,
    } = *limits;
    let period = if cpu_period == 0 { 100_000 } else { cpu_period };
    let v2 = *kind == Kind::V2;
    let mut files = Vec::new();
    if cpu_shares > 0 && kind.has("cpu") {
        files.push(if v2 {
            ("cpu.weight", weight(cpu_shares).to_string())
        } else {
            ("cpu.shares", cpu_shares.to_string())
        });
    }
    if cpu_quota > 0 && kind.has("cpu") {
        if v2 {
            files.push(("cpu.max", format!("{cpu_quota} {period}")));
        } else {
            files.push(("cpu.cfs_period_us", period.to_string()));
            files.push(("cpu.cfs_quota_us", cpu_quota.to_string()));
        }
    }
    if memory > 0 && kind.has("memory") {
        if v2 {
            files.push(("memory.max", memory.to_string()));
            files.push(("memory.swap.max", "0".to_owned()));
            files.push(("memory.oom.group", "1".to_owned()));
        } else {
            files.push(("memory.limit_in_bytes", memory.to_string()));
            files.push(("memory.memsw.limit_in_bytes", memory.to_string()));
        }
    }
    if pids > 0 && kind.has("pids") {
        files.push(("pids.max", pids.to_string()));
    }
    files
}

/// Converts `cpu.shares` of version 1 (2 to 262144) to `cpu.weight` of version 2 (1 to 10000), as all runtimes do.
fn weight(shares: u64) -> u64 {
    1 + (shares.clamp(2, 262_144) - 2) * 9_999 / 262_142
}

/// Writes a control file. Ignores files that this kernel does not have.
pub(super) fn write(file: &Path, value: &str) -> io::Result<()> {
    let written = std::fs::OpenOptions::new().write(true).open(file);
    let written = written.and_then(|mut file| io::Write::write_all(&mut file, value.as_bytes()));
    match written {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(io::Error::new(
            error.kind(),
            format!("{}: {error}", file.display()),
        )),
        Ok(()) => Ok(()),
    }
}

/// Enables controllers for all groups along a path. Where that is refused, limits have no effect.
pub(super) fn enable_controllers(mount_point: &Path, path: &str) {
    let mut dir = mount_point.to_owned();
    for name in path.split('/') {
        for controller in ["+cpu", "+memory", "+pids"] {
            let _refused = std::fs::write(dir.join("cgroup.subtree_control"), controller);
        }
        dir.push(name);
        let _there = std::fs::create_dir(&dir);
    }
}

/// The value of a key in a flat-keyed file.
pub(super) fn field(file: &Path, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(word, _)| *word == name)?.1.trim().parse().ok()
}

pub(super) fn number(file: &Path) -> Option<u64> {
    std::fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// The working set: usage without inactive file cache.
pub(super) fn memory(kind: &Kind, dir: &Path) -> Option<u64> {
    let (all, inactive) = match kind {
        Kind::V1(_) => ("memory.usage_in_bytes", "total_inactive_file"),
        Kind::V2 => ("memory.current", "inactive_file"),
    };
    let all = number(&dir.join(all))?;
    let inactive = field(&dir.join("memory.stat"), inactive).unwrap_or(0);
    Some(all.saturating_sub(inactive))
}

/// CPU time in nanoseconds.
pub(super) fn cpu(kind: &Kind, dir: &Path) -> Option<u64> {
    match kind {
        Kind::V1(_) => number(&dir.join("cpuacct.usage")),
        // This file exists even without the cpu controller.
        Kind::V2 => Some(field(&dir.join("cpu.stat"), "usage_usec")? * 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_written_for_both_versions() {
        let some = Limits {
            cpu_shares: 102,
            cpu_period: 0,
            cpu_quota: 20_000,
            memory: 1 << 20,
            pids: 4096,
        };
        let check = |kind: &Kind, expected: &[(&str, &str)]| {
            let found = limits(kind, &some);
            let found: Vec<_> = found
                .iter()
                .map(|(file, value)| (*file, value.as_str()))
                .collect();
            assert_eq!(found, expected);
        };
        check(
            &Kind::V2,
            &[
                ("cpu.weight", "4"),
                ("cpu.max", "20000 100000"),
                ("memory.max", "1048576"),
                ("memory.swap.max", "0"),
                ("memory.oom.group", "1"),
                ("pids.max", "4096"),
            ],
        );
        check(
            &Kind::V1(vec!["cpu".to_owned()]),
            &[
                ("cpu.shares", "102"),
                ("cpu.cfs_period_us", "100000"),
                ("cpu.cfs_quota_us", "20000"),
            ],
        );
        let memory = [
            ("memory.limit_in_bytes", "1048576"),
            ("memory.memsw.limit_in_bytes", "1048576"),
        ];
        check(&Kind::V1(vec!["memory".to_owned()]), &memory);
        check(&Kind::V1(vec!["pids".to_owned()]), &[("pids.max", "4096")]);
        assert_eq!(limits(&Kind::V2, &Limits::default()), []);
    }

    #[test]
    fn weights_span_the_whole_scale() {
        assert_eq!([2, 1024, 262_144].map(weight), [1, 39, 10_000]);
    }
}
