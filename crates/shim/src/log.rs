//! The log of a container: lines with time and stream, as every runtime of Kubernetes writes them.
//!
//! `2026-01-02T03:04:05.000000006Z stdout F text`. `P` instead of `F` marks a piece of a longer line. A disk
//! that is full costs lines, never the container's progress.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A line longer than this is written in pieces.
const LINE: usize = 16 << 10;

/// The file.
pub(crate) struct Log {
    path: PathBuf,
    file: File,
}

/// One stream of the container, up to the end of its last whole line.
pub(crate) struct Lines {
    stream: &'static str,
    rest: Vec<u8>,
}

impl Log {
    pub(crate) fn open(path: PathBuf) -> io::Result<Self> {
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir)?;
        }
        let file = append(&path)?;
        Ok(Self { path, file })
    }

    /// Goes on in a new file under the same name.
    pub(crate) fn reopen(&mut self) -> io::Result<()> {
        self.file = append(&self.path)?;
        Ok(())
    }

    pub(crate) fn write(&mut self, text: &[u8]) {
        // See above: what cannot be written is lost.
        let _full = self.file.write_all(text);
    }
}

fn append(path: &PathBuf) -> io::Result<File> {
    let mut options = OpenOptions::new();
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o640);
    options.append(true).create(true).open(path)
}

impl Lines {
    pub(crate) const fn of(stream: &'static str) -> Self {
        Self {
            stream,
            rest: Vec::new(),
        }
    }

    /// What these bytes add to the log.
    pub(crate) fn feed(&mut self, bytes: &[u8], now: SystemTime) -> Vec<u8> {
        let mut log = Vec::new();
        let stamp = stamp(now);
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, tag) = match part.split_last() {
                Some((b'\n', text)) => (text, 'F'),
                _ => (part, 'P'),
            };
            let mut text = text;
            while self.rest.len() + text.len() > LINE {
                let (now, later) = text.split_at(LINE - self.rest.len());
                self.line(&mut log, &stamp, 'P', now);
                text = later;
            }
            if tag == 'F' {
                self.line(&mut log, &stamp, tag, text);
            } else {
                self.rest.extend(text);
            }
        }
        log
    }

    /// What is left when the stream ends.
    pub(crate) fn end(&mut self, now: SystemTime) -> Vec<u8> {
        let mut log = Vec::new();
        if !self.rest.is_empty() {
            self.line(&mut log, &stamp(now), 'P', &[]);
        }
        log
    }

    fn line(&mut self, log: &mut Vec<u8>, stamp: &str, tag: char, text: &[u8]) {
        log.extend(format!("{stamp} {} {tag} ", self.stream).as_bytes());
        log.append(&mut self.rest);
        log.extend(text);
        log.push(b'\n');
        // A long line once must not be kept room for during months.
        self.rest = Vec::new();
    }
}

/// RFC 3339 with nanoseconds, in UTC. By hand: a library of time zones would be most of a shim's memory.
fn stamp(now: SystemTime) -> String {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let (seconds, nanos) = (since.as_secs(), since.subsec_nanos());
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{nanos:09}Z")
}

/// The date so many days after 1970 began. Years are counted from March, so that leap days come last.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_rfc_3339_has_them() {
        let check = |seconds, nanos, expected: &str| {
            assert_eq!(stamp(UNIX_EPOCH + Duration::new(seconds, nanos)), expected);
        };
        check(0, 0, "1970-01-01T00:00:00.000000000Z");
        check(951_782_400, 1, "2000-02-29T00:00:00.000000001Z");
        check(1_704_067_199, 999_999_999, "2023-12-31T23:59:59.999999999Z");
        check(4_107_542_400, 0, "2100-03-01T00:00:00.000000000Z");
    }

    fn written(parts: &[&str]) -> String {
        let mut lines = Lines::of("stdout");
        let mut log = Vec::new();
        for part in parts {
            log.extend(lines.feed(part.as_bytes(), UNIX_EPOCH));
        }
        log.extend(lines.end(UNIX_EPOCH));
        String::from_utf8(log)
            .unwrap()
            .replace("1970-01-01T00:00:00.000000000Z ", "")
    }

    #[test]
    fn lines_are_whole_or_marked() {
        let check =
            |parts: &[&str], expected: &str| assert_eq!(written(parts), expected, "{parts:?}");
        check(&[], "");
        check(&["a\nb\n"], "stdout F a\nstdout F b\n");
        check(&["a", "b\n\n"], "stdout F ab\nstdout F \n");
        check(&["prompt> "], "stdout P prompt> \n");
        let long = "x".repeat(LINE);
        check(&[&long, "\n"], &format!("stdout F {long}\n"));
        check(&[&long, "yz\n"], &format!("stdout P {long}\nstdout F yz\n"));
        check(
            &[&format!("{long}{long}y")],
            &format!("stdout P {long}\nstdout P {long}\nstdout P y\n"),
        );
    }
}
