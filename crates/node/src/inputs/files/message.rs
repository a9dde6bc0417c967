//! A container's last words: what it wrote to its termination message, or else the end of its log.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// The longest message of a container.
const MESSAGE_MAX: usize = 4096;
/// The most that all containers of a pod can say together.
const POD_MAX: usize = 12 * 1024;
/// The longest message that is taken from a log …
const FROM_LOG_MAX: usize = 2048;
/// … and of how many lines.
const LOG_LINES_MAX: usize = 80;
/// How much of a log is looked at: lines are longer in it than what they say.
const LOG_TAIL: u64 = 64 * 1024;

/// What one of so many containers left in a file.
pub(in crate::inputs) fn written(path: &Path, containers: usize) -> String {
    let bound = MESSAGE_MAX.min(POD_MAX / containers.max(1));
    let mut words = Vec::new();
    let read = open(path).and_then(|file| file.take(bound as u64).read_to_end(&mut words));
    if let Err(error) = read {
        tracing::debug!("a termination message cannot be read: {error}");
    }
    String::from_utf8_lossy(&words).into_owned()
}

/// What the end of a log says.
pub(in crate::inputs) fn logged(path: &Path) -> String {
    let text = tail(path).unwrap_or_default();
    let lines = text.split(|byte| *byte == b'\n');
    let said: Vec<Vec<u8>> = lines.filter_map(message).collect();
    let first = said.len().saturating_sub(LOG_LINES_MAX);
    let text: Vec<u8> = said[first..].concat();
    let from = text.len().saturating_sub(FROM_LOG_MAX);
    String::from_utf8_lossy(&text[from..]).into_owned()
}

/// Opens a plain file. Nothing else is read: a pipe would block, a link would lead elsewhere.
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
    file.seek(SeekFrom::Start(length.saturating_sub(LOG_TAIL)))?;
    let mut text = Vec::new();
    file.take(LOG_TAIL).read_to_end(&mut text)?;
    Ok(text)
}

/// What a line `<time> <stream> <F or P> <what was said>` says; nothing if it is only the end of one.
fn message(line: &[u8]) -> Option<Vec<u8>> {
    let mut parts = line.splitn(4, |byte| *byte == b' ');
    let (_time, stream, tag) = (parts.next()?, parts.next()?, parts.next()?);
    if !matches!(stream, b"stdout" | b"stderr") {
        return None;
    }
    let mut said = parts.next().unwrap_or_default().to_vec();
    if tag.starts_with(b"F") {
        said.push(b'\n');
    }
    Some(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_bounded_alone_and_together() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("message");
        assert_eq!(written(&path, 1), "");
        std::fs::write(&path, "x".repeat(10_000)).unwrap();
        assert_eq!(written(&path, 1).len(), 4096);
        assert_eq!(written(&path, 6).len(), 2048);
        assert_eq!(written(dir.path(), 1), "");
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert_eq!(written(&link, 1), "");
    }

    #[test]
    fn the_end_of_a_log_speaks_for_who_said_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("0.log");
        assert_eq!(logged(&path), "");
        let stamp = "2026-01-02T03:04:05.000000006Z";
        let log = format!("{stamp} stdout F hello\n{stamp} stderr P wor\n{stamp} stderr F ld\n");
        std::fs::write(&path, log).unwrap();
        assert_eq!(logged(&path), "hello\nworld\n");
        let lines = (0..100).map(|n| format!("{stamp} stdout F {n}\n"));
        std::fs::write(&path, lines.collect::<String>()).unwrap();
        let words = logged(&path);
        assert!(
            words.starts_with("20\n") && words.ends_with("\n99\n"),
            "{words}"
        );
        let long = format!("{stamp} stdout F {}\n", "y".repeat(300)).repeat(1000);
        std::fs::write(&path, long).unwrap();
        assert_eq!(logged(&path).len(), 2048);
    }
}
