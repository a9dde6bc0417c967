//! Backups of a running server at an interval, of which the newest are kept.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use kennel_core::metric::Page;
use kennel_types::Timestamp;
use tokio_util::sync::CancellationToken;

use super::{Backup, BackupError, NAME_PREFIX, NAME_SUFFIX, SecretFile, UNFINISHED_SUFFIX};
use crate::clock;
use crate::metrics;

pub const EVERY_DEFAULT: Duration = Duration::from_hours(24);
pub const KEEP_DEFAULT: u16 = 7;

/// How soon a backup that failed is tried again, unless the interval is shorter.
const RETRY: Duration = Duration::from_mins(10);

/// A file that has been unfinished for so long is of a backup that was interrupted, not of one that another server makes.
const INTERRUPTED: Duration = Duration::from_hours(24);

/// When and where to back up.
#[derive(Clone, Debug)]
pub struct Schedule {
    pub dir: PathBuf,
    pub every: Duration,
    /// How many backups to keep.
    pub keep: u16,
    pub secret: Option<SecretFile>,
}

/// How scheduled backups went, for metrics.
#[derive(Debug, Default)]
pub struct Status {
    /// In seconds since 1970; 0 if there was none.
    last: AtomicI64,
    failures: AtomicU64,
}

impl Status {
    pub(crate) fn show(&self, page: &mut Page) {
        let last = self.last.load(Ordering::Relaxed);
        page.number(&metrics::BACKUP_LAST, last);
        let failures = self.failures.load(Ordering::Relaxed);
        page.number(&metrics::BACKUP_FAILURES, failures);
    }
}

/// Backs up until `stop` is cancelled. A restart does not change the times: the first backup is due when the newest in
/// the directory is old enough.
pub(crate) async fn run(
    schedule: Schedule,
    data_dir: PathBuf,
    status: Arc<Status>,
    stop: CancellationToken,
) {
    let newest = newest(&schedule.dir);
    if let Some(time) = newest {
        status.last.store(time.as_secs(), Ordering::Relaxed);
    }
    let mut wait = due_in(newest, schedule.every, clock::now());
    loop {
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = stop.cancelled() => return,
        }
        let job = (schedule.clone(), data_dir.clone());
        let made = tokio::task::spawn_blocking(move || back_up(&job.0, &job.1)).await;
        let now = clock::now();
        wait = if let Ok(true) = made {
            status.last.store(now.as_secs(), Ordering::Relaxed);
            schedule.every
        } else {
            status.failures.fetch_add(1, Ordering::Relaxed);
            schedule.every.min(RETRY)
        };
    }
}

/// Returns whether there is a new backup.
fn back_up(schedule: &Schedule, data_dir: &Path) -> bool {
    match create(schedule, data_dir) {
        Ok(backup) => {
            let path = backup.path.display();
            tracing::info!(
                bytes = backup.bytes,
                objects = backup.objects,
                "wrote the backup {path}"
            );
            for value in &backup.damaged {
                tracing::error!(
                    key = value.key,
                    "backed up an object that cannot be read: {}",
                    value.reason
                );
            }
            let keep = usize::from(schedule.keep);
            if let Err(error) = remove_old(&schedule.dir, keep, clock::now()) {
                tracing::error!(%error, "cannot remove old backups from {}", schedule.dir.display());
            }
            true
        }
        Err(error) => {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
            tracing::error!(
                "the scheduled backup failed: {error}{}",
                cause.unwrap_or_default()
            );
            false
        }
    }
}

fn create(schedule: &Schedule, data_dir: &Path) -> Result<Backup, BackupError> {
    let secret = schedule.secret.as_ref().map(SecretFile::read).transpose()?;
    let mut builder = fs::DirBuilder::new();
    let made = builder.recursive(true).mode(0o700).create(&schedule.dir);
    made.map_err(super::at(&schedule.dir))?;
    super::create(data_dir, &schedule.dir, secret.as_ref())
}

/// The backups in a directory, oldest first.
fn list(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut backups = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if time_of(&path).is_some() {
            backups.push(path);
        }
    }
    backups.sort();
    Ok(backups)
}

/// When a backup was made, by its name. Files with other names are not ours.
fn time_of(path: &Path) -> Option<Timestamp> {
    let name = path.file_name()?.to_str()?;
    let time = name.strip_prefix(NAME_PREFIX)?.strip_suffix(NAME_SUFFIX)?;
    Timestamp::parse(time)
}

fn newest(dir: &Path) -> Option<Timestamp> {
    list(dir).ok()?.last().and_then(|path| time_of(path))
}

fn due_in(newest: Option<Timestamp>, every: Duration, now: Timestamp) -> Duration {
    // A backup from the future was made before the clock was set back: make another now.
    let newest = newest.filter(|newest| *newest <= now);
    newest.map_or(Duration::ZERO, |newest| {
        every.saturating_sub(now.saturating_since(newest))
    })
}

/// Removes all but the newest backups, and what interrupted ones have left.
fn remove_old(dir: &Path, keep: usize, now: Timestamp) -> io::Result<()> {
    let backups = list(dir)?;
    let old = backups.len().saturating_sub(keep);
    for path in &backups[..old] {
        fs::remove_file(path)?;
    }
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let begun = path
            .to_str()
            .and_then(|name| name.strip_suffix(UNFINISHED_SUFFIX));
        let begun = begun.and_then(|name| time_of(Path::new(name)));
        if begun.is_some_and(|begun| begun + INTERRUPTED < now) {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_kept_and_other_files_stay() {
        let dir = tempfile::tempdir().unwrap();
        let names = |day: u32| format!("kennel-202601{day:02}T000000Z.backup");
        for day in 1..=5 {
            fs::write(dir.path().join(names(day)), "").unwrap();
        }
        // The last one is of a backup that was interrupted four days ago.
        for other in [
            "kennel-notes.backup",
            "notes.backup.new",
            "kennel-20260104T120000Z.backup.new",
            "kennel-20260101T000000Z.backup.new",
        ] {
            fs::write(dir.path().join(other), "").unwrap();
        }
        let now = "2026-01-05T00:00:00Z".parse().unwrap();
        remove_old(dir.path(), 2, now).unwrap();
        let left: Vec<PathBuf> = list(dir.path()).unwrap();
        assert_eq!(left, [4, 5].map(|day| dir.path().join(names(day))));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 5);
        assert_eq!(
            newest(dir.path()),
            Some("2026-01-05T00:00:00Z".parse().unwrap())
        );
    }

    #[test]
    fn a_restart_does_not_change_the_times() {
        let time = |text: &str| text.parse::<Timestamp>().unwrap();
        let day = Duration::from_hours(24);
        let check = |newest: Option<&str>, hours: u64| {
            let due = due_in(newest.map(time), day, time("2026-01-02T12:00:00Z"));
            assert_eq!(due, Duration::from_hours(hours), "{newest:?}");
        };
        check(None, 0);
        check(Some("2026-01-01T00:00:00Z"), 0);
        check(Some("2026-01-02T02:00:00Z"), 14);
        check(Some("2026-01-03T00:00:00Z"), 0);
    }
}
