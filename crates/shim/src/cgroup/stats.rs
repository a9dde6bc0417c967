//! What the control files of a group have beside its usage: kinds of memory, limits and throttling.

use std::path::Path;

use super::Kind;
use super::files::{field, number};

/// Version 1 writes the largest multiple of a page for a group without a memory limit.
const UNLIMITED_BYTES: u64 = 1 << 62;

/// `None` for what the files of the mounted hierarchies do not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// All memory, file cache included, in bytes.
    pub memory_usage: Option<u64>,
    /// Anonymous memory, in bytes.
    pub rss: Option<u64>,
    /// File cache, in bytes.
    pub cache: Option<u64>,
    /// File cache that the kernel can reclaim first, in bytes.
    pub inactive_file: Option<u64>,
    /// Memory on swap devices, in bytes.
    pub swap: Option<u64>,
    /// In bytes; 0 means unlimited.
    pub memory_limit: Option<u64>,
    /// Microseconds per period; `None` means unlimited, too.
    pub cpu_quota: Option<u64>,
    /// Microseconds.
    pub cpu_period: Option<u64>,
    /// Periods in which a process of the group could run.
    pub periods: Option<u64>,
    /// Those in which the quota was used up.
    pub throttled_periods: Option<u64>,
    /// How long processes waited for the next period, in nanoseconds.
    pub throttled_time: Option<u64>,
    /// Processes that the kernel has killed for lack of memory.
    pub oom_kills: Option<u64>,
    /// Threads of all its processes, which the kernel calls pids.
    pub threads: Option<u64>,
}

impl Stats {
    pub(super) fn read(kind: &Kind, dir: &Path) -> Self {
        match kind {
            Kind::V1(_) => Self::read_v1(dir),
            Kind::V2 => Self::read_v2(dir),
        }
    }

    fn read_v1(dir: &Path) -> Self {
        let (memory, cpu) = (dir.join("memory.stat"), dir.join("cpu.stat"));
        let limit = number(&dir.join("memory.limit_in_bytes"));
        let limit = limit.map(|limit| if limit < UNLIMITED_BYTES { limit } else { 0 });
        Self {
            memory_usage: number(&dir.join("memory.usage_in_bytes")),
            rss: field(&memory, "total_rss"),
            cache: field(&memory, "total_cache"),
            inactive_file: field(&memory, "total_inactive_file"),
            swap: field(&memory, "total_swap"),
            memory_limit: limit,
            // -1 if there is none.
            cpu_quota: number(&dir.join("cpu.cfs_quota_us")),
            cpu_period: number(&dir.join("cpu.cfs_period_us")),
            periods: field(&cpu, "nr_periods"),
            throttled_periods: field(&cpu, "nr_throttled"),
            throttled_time: field(&cpu, "throttled_time"),
            oom_kills: field(&dir.join("memory.oom_control"), "oom_kill"),
            threads: number(&dir.join("pids.current")),
        }
    }

    fn read_v2(dir: &Path) -> Self {
        let (memory, cpu) = (dir.join("memory.stat"), dir.join("cpu.stat"));
        let text = |name: &str| std::fs::read_to_string(dir.join(name)).ok();
        let limit = text("memory.max");
        let limit = limit.and_then(|limit| match limit.trim() {
            "max" => Some(0),
            bytes => bytes.parse().ok(),
        });
        let max = text("cpu.max").unwrap_or_default();
        let (quota, period) = max.trim().split_once(' ').unwrap_or_default();
        Self {
            memory_usage: number(&dir.join("memory.current")),
            rss: field(&memory, "anon"),
            cache: field(&memory, "file"),
            inactive_file: field(&memory, "inactive_file"),
            swap: number(&dir.join("memory.swap.current")),
            memory_limit: limit,
            cpu_quota: quota.parse().ok(),
            cpu_period: period.parse().ok(),
            periods: field(&cpu, "nr_periods"),
            throttled_periods: field(&cpu, "nr_throttled"),
            throttled_time: field(&cpu, "throttled_usec").map(|micros| micros * 1000),
            oom_kills: field(&dir.join("memory.events"), "oom_kill"),
            threads: number(&dir.join("pids.current")),
        }
    }

    /// Usage without inactive file cache, in bytes; never more than `memory_usage`, because both are of the same read.
    pub fn working_set(&self) -> Option<u64> {
        let inactive = self.inactive_file.unwrap_or(0);
        Some(self.memory_usage?.saturating_sub(inactive))
    }

    /// What either of two hierarchies tells.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            memory_usage: self.memory_usage.or(other.memory_usage),
            rss: self.rss.or(other.rss),
            cache: self.cache.or(other.cache),
            inactive_file: self.inactive_file.or(other.inactive_file),
            swap: self.swap.or(other.swap),
            memory_limit: self.memory_limit.or(other.memory_limit),
            cpu_quota: self.cpu_quota.or(other.cpu_quota),
            cpu_period: self.cpu_period.or(other.cpu_period),
            periods: self.periods.or(other.periods),
            throttled_periods: self.throttled_periods.or(other.throttled_periods),
            throttled_time: self.throttled_time.or(other.throttled_time),
            oom_kills: self.oom_kills.or(other.oom_kills),
            threads: self.threads.or(other.threads),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Cgroups, Hierarchy, Usage};
    use super::*;

    /// A hierarchy with one group, `g`, that has these files.
    fn hierarchy(root: &Path, name: &str, kind: Kind, files: &[(&str, &str)]) -> Hierarchy {
        let mount_point = root.join(name);
        std::fs::create_dir_all(mount_point.join("g")).unwrap();
        for (file, text) in files {
            std::fs::write(mount_point.join("g").join(file), text).unwrap();
        }
        Hierarchy { mount_point, kind }
    }

    fn v1(root: &Path, controller: &str, files: &[(&str, &str)]) -> Hierarchy {
        let kind = Kind::V1(vec![controller.to_owned()]);
        hierarchy(root, controller, kind, files)
    }

    const EXPECTED: Stats = Stats {
        memory_usage: Some(9_000_000),
        rss: Some(5_000_000),
        cache: Some(4_000_000),
        inactive_file: Some(1_000_000),
        swap: Some(12_288),
        memory_limit: Some(16_777_216),
        cpu_quota: Some(20_000),
        cpu_period: Some(100_000),
        periods: Some(40),
        throttled_periods: Some(7),
        throttled_time: Some(3_000_000),
        oom_kills: Some(2),
        threads: Some(11),
    };

    #[test]
    fn version_1_spreads_its_files_over_hierarchies() {
        let root = tempfile::tempdir().unwrap();
        let stat = "cache 1\nrss 2\ntotal_cache 4000000\ntotal_rss 5000000\ntotal_swap 12288\ntotal_inactive_file 1000000\n";
        let memory = [
            ("memory.usage_in_bytes", "9000000\n"),
            ("memory.limit_in_bytes", "16777216\n"),
            ("memory.stat", stat),
            (
                "memory.oom_control",
                "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
            ),
        ];
        let cpu = [
            ("cpu.cfs_quota_us", "20000\n"),
            ("cpu.cfs_period_us", "100000\n"),
            (
                "cpu.stat",
                "nr_periods 40\nnr_throttled 7\nthrottled_time 3000000\n",
            ),
        ];
        let accounts = [("cpuacct.usage", "123456789\n")];
        let group = Cgroups(vec![
            v1(root.path(), "memory", &memory),
            v1(root.path(), "cpu", &cpu),
            v1(root.path(), "cpuacct", &accounts),
            v1(root.path(), "pids", &[("pids.current", "11\n")]),
        ])
        .group("g");
        assert_eq!(group.stats(), EXPECTED);
        assert_eq!(group.stats().working_set(), Some(8_000_000));
        let usage = Usage {
            memory: 8_000_000,
            cpu: 123_456_789,
        };
        assert_eq!(group.usage(), Some(usage));
    }

    #[test]
    fn version_2_has_all_files_in_one_directory() {
        let root = tempfile::tempdir().unwrap();
        let cpu = "usage_usec 123456\nuser_usec 1\nsystem_usec 2\nnr_periods 40\nnr_throttled 7\nthrottled_usec 3000\n";
        let files = [
            ("memory.current", "9000000\n"),
            ("memory.max", "16777216\n"),
            ("memory.swap.current", "12288\n"),
            (
                "memory.stat",
                "anon 5000000\nfile 4000000\ninactive_file 1000000\n",
            ),
            ("cpu.max", "20000 100000\n"),
            ("cpu.stat", cpu),
            (
                "memory.events",
                "low 0\nhigh 0\nmax 9\noom 3\noom_kill 2\noom_group_kill 0\n",
            ),
            ("pids.current", "11\n"),
        ];
        let unified = hierarchy(root.path(), "unified", Kind::V2, &files);
        let group = Cgroups(vec![unified]).group("g");
        assert_eq!(group.stats(), EXPECTED);
        let usage = Usage {
            memory: 8_000_000,
            cpu: 123_456_000,
        };
        assert_eq!(group.usage(), Some(usage));
    }

    #[test]
    fn what_is_unlimited_or_unknown_is_no_number() {
        let root = tempfile::tempdir().unwrap();
        let memory = [("memory.limit_in_bytes", "9223372036854771712\n")];
        let cpu = [("cpu.cfs_quota_us", "-1\n"), ("cpu.stat", "nonsense\n")];
        let old = Cgroups(vec![
            v1(root.path(), "memory", &memory),
            v1(root.path(), "cpu", &cpu),
        ]);
        let unlimited = Stats {
            memory_limit: Some(0),
            ..Stats::default()
        };
        assert_eq!(old.group("g").stats(), unlimited);
        let files = [("memory.max", "max\n"), ("cpu.max", "max 100000\n")];
        let new = Cgroups(vec![hierarchy(root.path(), "unified", Kind::V2, &files)]);
        let unlimited = Stats {
            cpu_period: Some(100_000),
            ..unlimited
        };
        assert_eq!(new.group("g").stats(), unlimited);
        assert_eq!(new.group("none").stats(), Stats::default());
        assert_eq!(new.group("none").usage(), None);
    }
}
