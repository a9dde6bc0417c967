//! SQLite's own checks of a file's structure.

use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode};

/// Reports to collect: what follows the first ones is mostly their consequence.
const REPORTS_MAX: usize = 10;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Sound,
    Damaged(Vec<String>),
    /// Stopped at the time limit; nothing was found so far.
    Unfinished,
}

/// `quick_check`, for at most this long.
pub(super) fn quick(connection: &Connection, limit: Duration) -> rusqlite::Result<Verdict> {
    let check = |connection: &Connection| reports(connection, "quick_check");
    Ok(match bounded(connection, limit, check)? {
        None => Verdict::Unfinished,
        Some(reports) if reports.is_empty() => Verdict::Sound,
        Some(reports) => Verdict::Damaged(reports),
    })
}

/// `None` if the work was interrupted at the time limit.
fn bounded<T>(
    connection: &Connection,
    limit: Duration,
    work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> rusqlite::Result<Option<T>> {
    let interrupt = connection.get_interrupt_handle();
    let (done, waiting) = sync_channel::<()>(0);
    let result = std::thread::scope(|scope| {
        scope.spawn(move || {
            if waiting.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                interrupt.interrupt();
            }
        });
        let result = work(connection);
        drop(done);
        result
    });
    match result {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => {
            Ok(None)
        }
        other => other.map(Some),
    }
}

/// What a check finds wrong; nothing in a sound file.
pub(super) fn reports(connection: &Connection, check: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare(&format!("PRAGMA {check}({REPORTS_MAX})"))?;
    let reports = statement.query_map([], |row| row.get::<_, String>(0))?;
    let mut reports = reports.collect::<rusqlite::Result<Vec<_>>>()?;
    reports.retain(|report| report != "ok");
    Ok(reports)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_ends_at_its_time_limit() {
        let connection = Connection::open_in_memory().unwrap();
        let endless =
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n";
        let count = |sql: &'static str| {
            move |connection: &Connection| connection.query_row(sql, [], |row| row.get::<_, i64>(0))
        };
        let soon = Duration::from_millis(10);
        assert_eq!(bounded(&connection, soon, count(endless)).unwrap(), None);
        let long = Duration::from_mins(1);
        assert_eq!(
            bounded(&connection, long, count("SELECT 7")).unwrap(),
            Some(7)
        );
        assert_eq!(quick(&connection, long).unwrap(), Verdict::Sound);
    }
}
