//! Where lines go: a file that is put away when it is large enough, or the standard output. Lines are
//! written whole or not at all, as far as a full disk allows. It knows nothing of what they say.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::options::{Options, Target};

/// Why the audit log could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file cannot be written.
    #[error("cannot write the audit log {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The writer could not be started.
    #[error("cannot start the audit log's writer")]
    Thread(#[source] io::Error),
}

/// How many bytes of what was to be written are in the log, and why not all of them.
pub(super) struct Torn {
    pub(super) kept: usize,
    pub(super) error: io::Error,
}

/// Where lines go.
pub(super) enum Output {
    Stdout,
    File(Rotating),
}

impl Output {
    /// Opens what the options name; `None` when they name nothing.
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
            // Room may come; until then lines are lost, which is counted.
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

    /// How many more bytes fit before a file would be put away.
    pub(super) fn room(&self) -> usize {
        match self {
            Self::Stdout => usize::MAX,
            Self::File(file) => file.room(),
        }
    }

    /// Appends whole lines.
    pub(super) fn append(&mut self, lines: &[u8]) -> Result<(), Torn> {
        match self {
            Self::Stdout => {
                let mut out = io::stdout().lock();
                let written = out.write_all(lines).and_then(|()| out.flush());
                // What a pipe has taken cannot be known, nor taken back.
                written.map_err(|error| Torn { kept: 0, error })
            }
            Self::File(file) => file.append(lines),
        }
    }

    /// Makes sure that what was written survives a power cut.
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

/// A file, and the older ones behind it: `audit.log`, `audit.log.1`, `audit.log.2`, …
pub(super) struct Rotating {
    path: PathBuf,
    max_bytes: u64,
    max_files: u16,
    file: Option<File>,
}

impl Rotating {
    fn room(&self) -> usize {
        let length = self.file.as_ref().and_then(|file| file.metadata().ok());
        let left = self.max_bytes.saturating_sub(length.map_or(0, |m| m.len()));
        usize::try_from(left).unwrap_or(usize::MAX)
    }

    fn append(&mut self, lines: &[u8]) -> Result<(), Torn> {
        let untouched = |error| Torn { kept: 0, error };
        let (mut file, mut length) = self.current().map_err(untouched)?;
        if length > 0 && length + lines.len() as u64 > self.max_bytes {
            match self.rotate() {
                Ok(()) => (file, length) = self.current().map_err(untouched)?,
                // Better a file that is too long than a line that is missing.
                Err(error) => tracing::warn!("{} cannot be put away: {error}", self.path.display()),
            }
        }
        write_lines(&mut file, length, lines)
    }

    /// The open file and its length. One that somebody has moved away or removed is made anew.
    fn current(&mut self) -> io::Result<(File, u64)> {
        if let Some(file) = &self.file {
            let ours = file.metadata()?;
            let is_there = fs::metadata(&self.path)
                .is_ok_and(|there| (there.dev(), there.ino()) == (ours.dev(), ours.ino()));
            if is_there {
                return Ok((file.try_clone()?, ours.len()));
            }
        }
        self.file = None;
        let mut file = open(&self.path)?;
        close_torn_line(&mut file)?;
        let length = file.metadata()?.len();
        self.file = Some(file.try_clone()?);
        Ok((file, length))
    }

    /// Puts the file away and the oldest one out.
    fn rotate(&mut self) -> io::Result<()> {
        if let Some(file) = self.file.take() {
            file.sync_data()?;
        }
        let oldest = self.max_files - 1;
        // More than one only after there were allowed to be more.
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

/// A server that was killed may have left half a line: it must not take the next one with it.
fn close_torn_line(file: &mut File) -> io::Result<()> {
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

/// Writes lines; on failure, whole ones stay and half of one is taken back.
fn write_lines(file: &mut File, start: u64, lines: &[u8]) -> Result<(), Torn> {
    let mut written = 0;
    while written < lines.len() {
        match file.write(&lines[written..]) {
            Ok(0) => {
                return Err(take_back(
                    file,
                    start,
                    &lines[..written],
                    ErrorKind::WriteZero.into(),
                ));
            }
            Ok(count) => written += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(take_back(file, start, &lines[..written], error)),
        }
    }
    Ok(())
}

fn take_back(file: &File, start: u64, written: &[u8], error: io::Error) -> Torn {
    let end = written.iter().rposition(|byte| *byte == b'\n');
    let kept = end.map_or(0, |end| end + 1);
    if kept < written.len()
        && let Err(error) = file.set_len(start + kept as u64)
    {
        tracing::warn!("half a line stays in the audit log: {error}");
    }
    Torn { kept, error }
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

    /// The files in the log's directory, by name, with what is in them.
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
    fn full_files_are_put_away_and_the_oldest_ones_out() {
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
    fn half_a_line_is_closed_and_files_moved_away_are_made_anew() {
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
    fn half_a_line_is_taken_back() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("log");
        let check = |written: &str, kept: usize, left: &str| {
            fs::write(&path, format!("old\n{written}")).unwrap();
            let file = open(&path).unwrap();
            let torn = take_back(&file, 4, written.as_bytes(), ErrorKind::StorageFull.into());
            assert_eq!(torn.kept, kept);
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
