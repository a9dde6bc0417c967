//! Facts about the machine, printed with the figures.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use kennel_core::spread::Spread;

use super::milliseconds;

/// Enough for a 99th percentile.
const SYNCS: usize = 200;
/// Bytes written before each sync: about ten pods in the log.
const SYNC_BYTES: usize = 40 << 10;

pub(super) fn facts(directory: &Path) -> Result<Vec<(&'static str, String)>> {
    let cores = std::thread::available_parallelism()?;
    let uname = rustix::system::uname();
    let syncs = sync_latency(directory)?;
    Ok(vec![
        ("cores", cores.to_string()),
        ("processor", processor()),
        ("kernel", uname.release().to_string_lossy().into_owned()),
        ("memory", memory()),
        (
            "disk",
            format!(
                "{}; {} KiB written and synced in {} median, {} p99",
                filesystem(directory),
                SYNC_BYTES >> 10,
                milliseconds(syncs.median()),
                milliseconds(syncs.percentile(99)),
            ),
        ),
        ("load", load()),
    ])
}

fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("model name"));
    let name = line
        .and_then(|line| line.split_once(": "))
        .map(|(_, name)| name);
    name.unwrap_or(std::env::consts::ARCH).to_owned()
}

fn memory() -> String {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().next().unwrap_or_default();
    line.trim_start_matches("MemTotal:").trim().to_owned()
}

fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let minute = text.split(' ').next().unwrap_or_default();
    format!("{minute} (1 minute average)")
}

/// The file system of a directory: that of the mount point with the longest prefix.
fn filesystem(directory: &Path) -> String {
    let text = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mounts = text.lines().filter_map(|line| {
        let mut words = line.split(' ');
        Some((words.next()?, words.next()?, words.next()?))
    });
    let prefixes = mounts.filter(|(_, point, _)| directory.starts_with(point));
    let longest = prefixes.max_by_key(|(_, point, _)| point.len());
    longest.map_or_else(
        || "unknown".to_owned(),
        |(device, _, kind)| format!("{kind} on {device}"),
    )
}

fn sync_latency(directory: &Path) -> Result<Spread> {
    let mut file = File::create(directory.join("sync-latency"))?;
    let data = vec![b'x'; SYNC_BYTES];
    let one = |_| -> Result<Duration> {
        let started_at = Instant::now();
        file.write_all(&data)?;
        file.sync_data()?;
        Ok(started_at.elapsed())
    };
    let syncs = (0..SYNCS).map(one).collect::<Result<Vec<_>>>()?;
    Ok(syncs.into_iter().collect())
}
