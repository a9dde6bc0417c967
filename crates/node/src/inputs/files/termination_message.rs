//! Termination messages of containers, or the end of their logs.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Upstream's limits: of a container, of all containers of a pod together, and of a message from a log.
const MAX_BYTES: usize = 4096;
const MAX_POD_BYTES: usize = 12 * 1024;
const MAX_LOG_BYTES: usize = 2048;
const MAX_LOG_LINES: usize = 80;
/// How much of a log is read: its lines are longer than their messages.
const LOG_TAIL_BYTES: u64 = 64 * 1024;

/// The message that a container wrote to its file; `containers` share the limit of their pod.
pub(in crate::inputs) fn from_file(path: &Path, containers: usize) -> String {
    let limit = MAX_BYTES.min(MAX_POD_BYTES / containers.max(1));
    let mut message = Vec::new();
    let read = open(path).and_then(|file| file.take(limit as u64).read_to_end(&mut message));
    if let Err(error) = read {
        tracing::debug!("cannot read a termination message: {error}");
    }
    String::from_utf8_lossy(&message).into_owned()
}

/// The end of a container's log.
pub(in crate::inputs) fn from_log(path: &Path) -> String {
    let text = tail(path).unwrap_or_default();
    let lines = text.split(|byte| *byte == b'\n');
    let messages: Vec<Vec<u8>> = lines.filter_map(parse_line).collect();
    let first = messages.len().saturating_sub(MAX_LOG_LINES);
    let text: Vec<u8> = messages[first..].concat();
    let from = text.len().saturating_sub(MAX_LOG_BYTES);
    String::from_utf8_lossy(&text[from..]).into_owned()
}

/// Opens a regular file only: a pipe would block, and a link could lead to the machine's files.
fn open(path: &Path) -> std::io::Result<File> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(std::io::ErrorKind::InvalidInput.into())
    }
}

fn tail(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut file = open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LOG_TAIL_BYTES)))?;
    let mut text = Vec::new();
    file.take(LOG_TAIL_BYTES).read_to_end(&mut text)?;
    Ok(text)
}

/// The message of a line `<time> <stream> <F or P> <message>`; none for the rest of a line that was cut.
fn parse_line(line: &[u8]) -> Option<Vec<u8>> {
    let mut parts = line.splitn(4, |byte| *byte == b' ');
    let (_time, stream, tag) = (parts.next()?, parts.next()?, parts.next()?);
    if !matches!(stream, b"stdout" | b"stderr") {
        return None;
    }
    let mut message = parts.next().unwrap_or_default().to_vec();
    if tag.starts_with(b"F") {
        message.push(b'\n');
    }
    Some(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_bounded_alone_and_together() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("message");
        assert_eq!(from_file(&path, 1), "");
        std::fs::write(&path, "x".repeat(10_000)).unwrap();
        assert_eq!(from_file(&path, 1).len(), 4096);
        assert_eq!(from_file(&path, 6).len(), 2048);
        assert_eq!(from_file(dir.path(), 1), "");
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert_eq!(from_file(&link, 1), "");
    }

    #[test]
    fn the_end_of_a_log_is_parsed_and_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("0.log");
        assert_eq!(from_log(&path), "");
        let stamp = "2026-01-02T03:04:05.000000006Z";
        let log = format!("{stamp} stdout F hello\n{stamp} stderr P wor\n{stamp} stderr F ld\n");
        std::fs::write(&path, log).unwrap();
        assert_eq!(from_log(&path), "hello\nworld\n");
        let lines = (0..100).map(|n| format!("{stamp} stdout F {n}\n"));
        std::fs::write(&path, lines.collect::<String>()).unwrap();
        let message = from_log(&path);
        assert!(
            message.starts_with("20\n") && message.ends_with("\n99\n"),
            "{message}"
        );
        let long = format!("{stamp} stdout F {}\n", "y".repeat(300)).repeat(1000);
        std::fs::write(&path, long).unwrap();
        assert_eq!(from_log(&path).len(), 2048);
    }
}
