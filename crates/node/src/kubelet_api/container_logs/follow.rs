//! Sends a log to a reader, to its end or as long as it grows.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;

use super::options::Options;
use super::printer::Printer;
use super::tail;
use crate::directory_watch::DirectoryWatch;
use crate::files::if_found;

/// The size of a chunk.
const CHUNK_BYTES: usize = 32 * 1024;
/// Longer lines are cut; runtimes cut theirs at 16 KiB.
const LINE_BYTES_MAX: usize = 1 << 20;
/// How often following checks whether the container still runs.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// An open log.
pub(in crate::kubelet_api) struct Log {
    path: PathBuf,
    reading: Reading,
    follow: bool,
}

impl Log {
    /// Opens a log at the first requested line.
    pub(in crate::kubelet_api) async fn open(path: PathBuf, options: Options) -> io::Result<Self> {
        let opening = tokio::task::spawn_blocking(move || {
            let follow = options.follow;
            let reading = Reading::open(&path, options)?;
            Ok(Self {
                path,
                reading,
                follow,
            })
        });
        opening.await.map_err(io::Error::other)?
    }

    /// Sends the requested lines. `is_running` says whether the log may still grow. Returns when the receiver is
    /// closed.
    pub(in crate::kubelet_api) async fn send(
        self,
        is_running: impl Fn() -> bool + Send,
        out: mpsc::Sender<Bytes>,
    ) -> io::Result<()> {
        let Self { path, reading, .. } = self;
        let dir = path.parent().unwrap_or(Path::new("/"));
        let watch = self.follow.then(|| DirectoryWatch::of_writes(dir));
        if let Some(watch) = &watch {
            watch.attach();
        }
        let mut reading = Some(reading);
        loop {
            // Checked before reading, so that the read covers everything written before the end.
            let ended = !is_running();
            reading = read_all(reading, &out).await?;
            let (Some(open), Some(watch)) = (&reading, &watch) else {
                return Ok(());
            };
            if open.is_rotated(&path) {
                // Reads what was written between the last read and the rotation.
                reading = read_all(reading, &out).await?;
                let Some(open) = &mut reading else {
                    return Ok(());
                };
                if open.reopen(&path)? {
                    continue;
                }
            }
            if ended {
                return Ok(());
            }
            tokio::select! {
                () = watch.changed() => {}
                () = tokio::time::sleep(POLL_INTERVAL) => {}
                () = out.closed() => return Ok(()),
            }
        }
    }
}

/// Reads to the end of the file. `None` when the receiver is closed or the byte limit is reached.
async fn read_all(
    mut reading: Option<Reading>,
    out: &mpsc::Sender<Bytes>,
) -> io::Result<Option<Reading>> {
    while let Some(mut open) = reading.take() {
        let read =
            tokio::task::spawn_blocking(move || open.read_chunk().map(|chunk| (open, chunk)));
        let (open, chunk) = read.await.map_err(io::Error::other)??;
        let (at_end, limit_reached) = (chunk.at_end, open.printer.limit_reached());
        if !chunk.text.is_empty() && out.send(chunk.text.into()).await.is_err() {
            return Ok(None);
        }
        if limit_reached {
            return Ok(None);
        }
        reading = Some(open);
        if at_end {
            break;
        }
    }
    Ok(reading)
}

struct Chunk {
    text: Vec<u8>,
    /// The end of the file is reached.
    at_end: bool,
}

struct Reading {
    file: BufReader<File>,
    printer: Printer,
    /// The beginning of an incomplete line.
    line: Vec<u8>,
    inode: u64,
}

impl Reading {
    fn open(path: &Path, options: Options) -> io::Result<Self> {
        let mut file = File::open(path)?;
        if let Some(lines) = options.tail {
            let start = tail::start(&file, lines)?;
            file.seek(SeekFrom::Start(start))?;
        }
        let inode = file.metadata()?.ino();
        Ok(Self {
            file: BufReader::with_capacity(CHUNK_BYTES, file),
            printer: Printer::new(options),
            line: Vec::new(),
            inode,
        })
    }

    fn read_chunk(&mut self) -> io::Result<Chunk> {
        let mut text = Vec::new();
        while text.len() < CHUNK_BYTES && !self.printer.limit_reached() {
            let part = self.file.fill_buf()?;
            if part.is_empty() {
                return Ok(Chunk { text, at_end: true });
            }
            let end = part.iter().position(|byte| *byte == b'\n');
            let length = end.map_or(part.len(), |end| end + 1);
            if self.line.len() < LINE_BYTES_MAX {
                self.line.extend_from_slice(&part[..length]);
            }
            self.file.consume(length);
            if end.is_some() {
                self.printer.print(&self.line, &mut text);
                self.line.clear();
            }
        }
        Ok(Chunk {
            text,
            at_end: false,
        })
    }

    /// Whether another file has taken the name.
    fn is_rotated(&self, path: &Path) -> bool {
        std::fs::metadata(path).is_ok_and(|now| now.ino() != self.inode)
    }

    /// Continues with the new file. False if there is none.
    fn reopen(&mut self, path: &Path) -> io::Result<bool> {
        let Some(file) = if_found(File::open(path))? else {
            return Ok(false);
        };
        self.inode = file.metadata()?.ino();
        self.file = BufReader::with_capacity(CHUNK_BYTES, file);
        self.line.clear();
        Ok(true)
    }
}

#[cfg(test)]
mod tests;
