//! The output of the audit log: a file with rotation, or the standard output. A line that a full disk
//! cuts off is removed again.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::options::{Options, Target};

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("cannot write the audit log {}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("cannot start the audit log's writer")]
    Thread(#[source] io::Error),
}

pub(super) struct AppendError {
    /// Bytes of whole lines that were written.
    pub(super) written: usize,
    pub(super) error: io::Error,
}

pub(super) enum Output {
    Stdout,
    File(Rotating),
}

impl Output {
    /// `None` if the audit log is off.
    pub(super) fn open(options: &Options) -> Result<Option<Self>, OpenError> {
        let path = match &options.target {
            Target::Off => return Ok(None),
            Target::Stdout => return Ok(Some(Self::Stdout)),
            Target::File(path) => path.clone(),
        };
        let mut file = Rotating {
            path,
            max_bytes: options.max_size.0,
            max_files: options.max_files.max(1),
            file: None,
        };
        match file.current() {
            Ok(_) => {}
            // The disk may get space again; until then lines are lost and counted.
            Err(error) if error.kind() == ErrorKind::StorageFull => {
                tracing::warn!("the audit log {}: {error}", file.path.display());
            }
            Err(source) => {
                let path = file.path;
                return Err(OpenError::File { path, source });
            }
        }
        Ok(Some(Self::File(file)))
    }

    /// Bytes that fit before the file would be rotated.
    pub(super) fn remaining(&self) -> usize {
        match self {
            Self::Stdout => usize::MAX,
            Self::File(file) => file.remaining(),
        }
    }

    /// Appends whole lines.
    pub(super) fn append(&mut self, lines: &[u8]) -> Result<(), AppendError> {
        match self {
            Self::Stdout => {
                let mut out = io::stdout().lock();
                let written = out.write_all(lines).and_then(|()| out.flush());
                // It is unknown how much the pipe has taken.
                written.map_err(|error| AppendError { written: 0, error })
            }
            Self::File(file) => file.append(lines),
        }
    }

    pub(super) fn sync(&self) {
        if let Self::File(Rotating {
            file: Some(file), ..
        }) = self
            && let Err(error) = file.sync_data()
        {
            tracing::warn!("the audit log could not be synced: {error}");
        }
    }
}

/// The current file and the rotated ones: `audit.log`, `audit.log.1`, `audit.log.2`, …
pub(super) struct Rotating {
    path: PathBuf,
    max_bytes: u64,
    max_files: u16,
    file: Option<File>,
}

impl Rotating {
    fn remaining(&self) -> usize {
        let length = self.file.as_ref().and_then(|file| file.metadata().ok());
        let left = self.max_bytes.saturating_sub(length.map_or(0, |m| m.len()));
        usize::try_from(left).unwrap_or(usize::MAX)
    }

    fn append(&mut self, lines: &[u8]) -> Result<(), AppendError> {
        let failed = |error| AppendError { written: 0, error };
        let (mut file, mut length) = self.current().map_err(failed)?;
        if length > 0 && length + lines.len() as u64 > self.max_bytes {
            match self.rotate() {
                Ok(()) => (file, length) = self.current().map_err(failed)?,
                // Prefers a file that is too long to a missing line.
                Err(error) => tracing::warn!("cannot rotate {}: {error}", self.path.display()),
            }
        }
        write_lines(&mut file, length, lines)
    }

    /// The open file and its length. Reopens a file that was moved or removed.
    fn current(&mut self) -> io::Result<(File, u64)> {
        if let Some(file) = &self.file {
            let ours = file.metadata()?;
            let is_same = fs::metadata(&self.path)
                .is_ok_and(|named| (named.dev(), named.ino()) == (ours.dev(), ours.ino()));
            if is_same {
                return Ok((file.try_clone()?, ours.len()));
            }
        }
        self.file = None;
        let mut file = open(&self.path)?;
        terminate_partial_line(&mut file)?;
        let length = file.metadata()?.len();
        self.file = Some(file.try_clone()?);
        Ok((file, length))
    }

    /// Renames each file to the next number and removes the oldest.
    fn rotate(&mut self) -> io::Result<()> {
        if let Some(file) = self.file.take() {
            file.sync_data()?;
        }
        let oldest = self.max_files - 1;
        // Removes more than one after `max_files` was lowered.
        for number in oldest.. {
            match fs::remove_file(self.name(number)) {
                Err(error) if error.kind() == ErrorKind::NotFound => break,
                other => other?,
            }
        }
        for number in (0..oldest).rev() {
            match fs::rename(self.name(number), self.name(number + 1)) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// The current file is number zero.
    fn name(&self, number: u16) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        if number > 0 {
            name.push(format!(".{number}"));
        }
        name.into()
    }
}

fn open(path: &Path) -> io::Result<File> {
    if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    OpenOptions::new()
        .create(true)
        .append(true)
        .read(true)
        .mode(0o600)
        .open(path)
}

/// Ends a partial line of a killed server, so that it does not spoil the next one.
fn terminate_partial_line(file: &mut File) -> io::Result<()> {
    if file.metadata()?.len() == 0 || !file.metadata()?.is_file() {
        return Ok(());
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    if last != *b"\n" {
        file.write_all(b"\n")?;
    }
    Ok(())
}

/// On failure, whole lines stay and a partial line is removed.
fn write_lines(file: &mut File, start: u64, lines: &[u8]) -> Result<(), AppendError> {
    let mut written = 0;
    while written < lines.len() {
        match file.write(&lines[written..]) {
            Ok(0) => {
                return Err(truncate_partial_line(
                    file,
                    start,
                    &lines[..written],
                    ErrorKind::WriteZero.into(),
                ));
            }
            Ok(count) => written += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(truncate_partial_line(file, start, &lines[..written], error)),
        }
    }
    Ok(())
}

fn truncate_partial_line(file: &File, start: u64, written: &[u8], error: io::Error) -> AppendError {
    let end = written.iter().rposition(|byte| *byte == b'\n');
    let whole = end.map_or(0, |end| end + 1);
    if whole < written.len()
        && let Err(error) = file.set_len(start + whole as u64)
    {
        tracing::warn!("cannot remove a partial line from the audit log: {error}");
    }
    AppendError {
        written: whole,
        error,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use tempfile::TempDir;

    use super::super::options::Bytes;
    use super::*;

    fn open_in(dir: &TempDir, max_files: u16) -> Output {
        let options = Options {
            target: Target::File(dir.path().join("sub/audit.log")),
            max_size: Bytes(20),
            max_files,
            skip_heartbeats: false,
        };
        Output::open(&options).unwrap().unwrap()
    }

    fn append(output: &mut Output, line: &str) {
        let appended = output.append(format!("{line}\n").as_bytes());
        assert!(appended.is_ok_and(|()| true), "{line}");
    }

    /// The files in the log's directory, by name, with their content.
    fn files(dir: &TempDir) -> String {
        let entries = fs::read_dir(dir.path().join("sub")).unwrap();
        let mut found: Vec<String> = entries
            .map(|entry| {
                let path = entry.unwrap().path();
                let text = fs::read_to_string(&path).unwrap().replace('\n', "|");
                format!("{} {text}", path.file_name().unwrap().display())
            })
            .collect();
        found.sort();
        found.join("; ")
    }

    #[test]
    fn full_files_are_rotated_and_the_oldest_removed() {
        let dir = TempDir::new().unwrap();
        let mut output = open_in(&dir, 3);
        for line in ["one.....", "two.....", "three...", "four....", "five...."] {
            append(&mut output, line);
        }
        let expected = "audit.log five....|; audit.log.1 three...|four....|; \
                        audit.log.2 one.....|two.....|";
        assert_eq!(files(&dir), expected);
        append(&mut output, &"long".repeat(10));
        append(&mut output, "six");
        let long = "long".repeat(10);
        let expected = format!("audit.log six|; audit.log.1 {long}|; audit.log.2 five....|");
        assert_eq!(files(&dir), expected);
        drop(output);
        let mut output = open_in(&dir, 1);
        append(&mut output, "seven...........");
        assert_eq!(files(&dir), "audit.log seven...........|");
    }

    #[test]
    fn partial_lines_are_ended_and_moved_files_reopened() {
        let dir = TempDir::new().unwrap();
        let mut output = open_in(&dir, 3);
        append(&mut output, "a");
        drop(output);
        let path = dir.path().join("sub/audit.log");
        fs::write(&path, "a\n{\"ha").unwrap();
        let mut output = open_in(&dir, 3);
        append(&mut output, "b");
        assert_eq!(files(&dir), "audit.log a|{\"ha|b|");
        fs::rename(&path, path.with_extension("old")).unwrap();
        append(&mut output, "c");
        assert_eq!(files(&dir), "audit.log c|; audit.old a|{\"ha|b|");
        fs::remove_dir_all(dir.path().join("sub")).unwrap();
        append(&mut output, "d");
        assert_eq!(files(&dir), "audit.log d|");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(&dir.path().join("sub")), 0o700);
    }

    #[test]
    fn partial_lines_are_removed() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("log");
        let check = |written: &str, kept: usize, left: &str| {
            fs::write(&path, format!("old\n{written}")).unwrap();
            let file = open(&path).unwrap();
            let failed =
                truncate_partial_line(&file, 4, written.as_bytes(), ErrorKind::StorageFull.into());
            assert_eq!(failed.written, kept);
            assert_eq!(fs::read_to_string(&path).unwrap(), left);
        };
        check("a\nb\nha", 4, "old\na\nb\n");
        check("ha", 0, "old\n");
        check("", 0, "old\n");
    }

    #[test]
    fn a_place_that_cannot_be_written_is_refused() {
        let dir = TempDir::new().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "x").unwrap();
        let options = Options {
            target: Target::File(file.join("below")),
            max_size: Bytes(20),
            max_files: 1,
            skip_heartbeats: false,
        };
        let refused = Output::open(&options).err().unwrap().to_string();
        assert!(
            refused.starts_with("cannot write the audit log /"),
            "{refused}"
        );
    }
}
