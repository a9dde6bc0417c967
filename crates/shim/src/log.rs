//! The log of a container, in the CRI log format.
//!
//! `2026-01-02T03:04:05.000000006Z stdout F text`. `P` instead of `F` marks a part of a longer line. When the disk is
//! full, lines are lost; the container never blocks.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Longer lines are split.
const LINE_BYTES_MAX: usize = 16 << 10;

pub(crate) struct Log {
    path: PathBuf,
    file: File,
}

/// Splits the output of one stream into lines.
pub(crate) struct Lines {
    stream: &'static str,
    /// The beginning of an incomplete line.
    partial: Vec<u8>,
}

impl Log {
    pub(crate) fn open(path: PathBuf) -> io::Result<Self> {
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir)?;
        }
        let file = append(&path)?;
        Ok(Self { path, file })
    }

    /// Opens the path again, after the file was renamed.
    pub(crate) fn reopen(&mut self) -> io::Result<()> {
        self.file = append(&self.path)?;
        Ok(())
    }

    pub(crate) fn write(&mut self, text: &[u8]) {
        // A full disk must not block the container.
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
            partial: Vec::new(),
        }
    }

    /// Returns the log lines that these bytes complete.
    pub(crate) fn push(&mut self, bytes: &[u8], now: SystemTime) -> Vec<u8> {
        let mut log = Vec::new();
        let timestamp = timestamp(now);
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, tag) = match part.split_last() {
                Some((b'\n', text)) => (text, 'F'),
                _ => (part, 'P'),
            };
            let mut text = text;
            while self.partial.len() + text.len() > LINE_BYTES_MAX {
                let (now, later) = text.split_at(LINE_BYTES_MAX - self.partial.len());
                self.line(&mut log, &timestamp, 'P', now);
                text = later;
            }
            if tag == 'F' {
                self.line(&mut log, &timestamp, tag, text);
            } else {
                self.partial.extend(text);
            }
        }
        log
    }

    /// Returns the incomplete last line at the end of the stream.
    pub(crate) fn finish(&mut self, now: SystemTime) -> Vec<u8> {
        let mut log = Vec::new();
        if !self.partial.is_empty() {
            self.line(&mut log, &timestamp(now), 'P', &[]);
        }
        log
    }

    fn line(&mut self, log: &mut Vec<u8>, timestamp: &str, tag: char, text: &[u8]) {
        log.extend(format!("{timestamp} {} {tag} ", self.stream).as_bytes());
        log.append(&mut self.partial);
        log.extend(text);
        log.push(b'\n');
        // Releases the memory of a long line.
        self.partial = Vec::new();
    }
}

/// RFC 3339 with nanoseconds, in UTC. Written by hand because a time library would dominate a shim's memory.
fn timestamp(now: SystemTime) -> String {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let (seconds, nanos) = (since.as_secs(), since.subsec_nanos());
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{nanos:09}Z")
}

/// Year, month and day of a day since the epoch. Internally, years start in March, so that leap days come last.
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
    fn timestamps_are_rfc_3339() {
        let check = |seconds, nanos, expected: &str| {
            assert_eq!(
                timestamp(UNIX_EPOCH + Duration::new(seconds, nanos)),
                expected
            );
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
            log.extend(lines.push(part.as_bytes(), UNIX_EPOCH));
        }
        log.extend(lines.finish(UNIX_EPOCH));
        String::from_utf8(log)
            .unwrap()
            .replace("1970-01-01T00:00:00.000000000Z ", "")
    }

    #[test]
    fn incomplete_lines_are_marked_as_partial() {
        let check =
            |parts: &[&str], expected: &str| assert_eq!(written(parts), expected, "{parts:?}");
        check(&[], "");
        check(&["a\nb\n"], "stdout F a\nstdout F b\n");
        check(&["a", "b\n\n"], "stdout F ab\nstdout F \n");
        check(&["prompt> "], "stdout P prompt> \n");
        let long = "x".repeat(LINE_BYTES_MAX);
        check(&[&long, "\n"], &format!("stdout F {long}\n"));
        check(&[&long, "yz\n"], &format!("stdout P {long}\nstdout F yz\n"));
        check(
            &[&format!("{long}{long}y")],
            &format!("stdout P {long}\nstdout P {long}\nstdout P y\n"),
        );
    }
}
