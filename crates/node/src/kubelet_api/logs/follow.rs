//! Reads a log and hands it on, to its end or as long as it grows.

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
use crate::manifests::bell::Bell;

/// How much is handed on at once.
const PIECE_BYTES: usize = 32 * 1024;
/// The longest line we keep; runtimes cut theirs at 16 KiB.
const LINE_BYTES_MAX: usize = 1 << 20;
/// How often somebody who follows looks whether the container still runs.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// A log that somebody wants to read.
pub(in crate::kubelet_api) struct Log {
    path: PathBuf,
    reading: Reading,
    follow: bool,
}

impl Log {
    /// Opens a log, at the first line that is wanted.
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

    /// Hands on what is wanted. `runs` says whether more may come. Ends when the reader has gone.
    pub(in crate::kubelet_api) async fn send(
        self,
        runs: impl Fn() -> bool + Send,
        out: mpsc::Sender<Bytes>,
    ) -> io::Result<()> {
        let Self { path, reading, .. } = self;
        let dir = path.parent().unwrap_or(Path::new("/"));
        let bell = self.follow.then(|| Bell::of_writes(dir));
        if let Some(bell) = &bell {
            bell.listen();
        }
        let mut reading = Some(reading);
        loop {
            // Asked before reading: what was written before it ended is there by now.
            let ends = !runs();
            reading = read_all(reading, &out).await?;
            let (Some(open), Some(bell)) = (&reading, &bell) else {
                return Ok(());
            };
            if open.has_moved(&path) {
                // What was written between the last look and the move.
                reading = read_all(reading, &out).await?;
                let Some(open) = &mut reading else {
                    return Ok(());
                };
                if open.reopen(&path)? {
                    continue;
                }
            }
            if ends {
                return Ok(());
            }
            tokio::select! {
                () = bell.rung() => {}
                () = tokio::time::sleep(LOOK_AGAIN) => {}
                () = out.closed() => return Ok(()),
            }
        }
    }
}

/// Reads to the end of the file. None when there is nobody to read for, or nothing more is wanted.
async fn read_all(
    mut reading: Option<Reading>,
    out: &mpsc::Sender<Bytes>,
) -> io::Result<Option<Reading>> {
    while let Some(mut open) = reading.take() {
        let read = tokio::task::spawn_blocking(move || open.piece().map(|piece| (open, piece)));
        let (open, piece) = read.await.map_err(io::Error::other)??;
        let (ended, full) = (piece.ended, open.printer.is_full());
        if !piece.text.is_empty() && out.send(piece.text.into()).await.is_err() {
            return Ok(None);
        }
        if full {
            return Ok(None);
        }
        reading = Some(open);
        if ended {
            break;
        }
    }
    Ok(reading)
}

/// What was read at once.
struct Piece {
    text: Vec<u8>,
    /// It was the last of the file.
    ended: bool,
}

struct Reading {
    file: BufReader<File>,
    printer: Printer,
    /// A line that has not ended yet.
    line: Vec<u8>,
    inode: u64,
}

impl Reading {
    fn open(path: &Path, options: Options) -> io::Result<Self> {
        let mut file = File::open(path)?;
        if let Some(lines) = options.tail {
            let begin = tail::begin(&file, lines)?;
            file.seek(SeekFrom::Start(begin))?;
        }
        let inode = file.metadata()?.ino();
        Ok(Self {
            file: BufReader::with_capacity(PIECE_BYTES, file),
            printer: Printer::new(options),
            line: Vec::new(),
            inode,
        })
    }

    /// Reads some lines.
    fn piece(&mut self) -> io::Result<Piece> {
        let mut text = Vec::new();
        while text.len() < PIECE_BYTES && !self.printer.is_full() {
            let part = self.file.fill_buf()?;
            if part.is_empty() {
                return Ok(Piece { text, ended: true });
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
        Ok(Piece { text, ended: false })
    }

    /// Is there another file under the name?
    fn has_moved(&self, path: &Path) -> bool {
        std::fs::metadata(path).is_ok_and(|now| now.ino() != self.inode)
    }

    /// Goes on with the new file; not if there is none.
    fn reopen(&mut self, path: &Path) -> io::Result<bool> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        self.inode = file.metadata()?.ino();
        self.file = BufReader::with_capacity(PIECE_BYTES, file);
        self.line.clear();
        Ok(true)
    }
}

#[cfg(test)]
mod tests;
