//! Finds damage in the write-ahead log, which SQLite does not report: at the first frame whose checksum does not match, SQLite
//! ends the log, and drops what follows. That is right for what a crash left of a commit that was never synced, and wrong
//! for a bit that flipped in one that was.
//!
//! The checksum of each frame continues that of the frame before it. SQLite computes the first checksum of a commit only after the
//! sync of the commit before it has returned. So a frame that continues the checksum of a commit's last frame proves that
//! the commit was synced, and a log that ends before it is damaged. Nothing that a power cut or a failed write leaves behind
//! looks like that. The last commit has no such proof
//! ([decision 52](../../../../../docs/decisions/0052-storage-faults.md)).

use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::schema::PAGE_BYTES;

const HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;
/// Of the shared index, up to the salts.
const INDEX_HEADER_BYTES: usize = 40;
const FRAME_BYTES: usize = FRAME_HEADER_BYTES + PAGE_BYTES;

/// The last bit tells the byte order of checksums.
const MAGIC: u32 = 0x377f_0682;
const VERSION: u32 = 3_007_000;

/// The least that disks write as a whole.
const SECTOR_BYTES: u64 = 512;

/// How often a log is read while each reading finds something else, because a server writes to it.
const READINGS_MAX: usize = 5;

/// Commits of a write-ahead log that were synced and cannot be read any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogDamage {
    pub file: PathBuf,
    /// The first frame that does not match its checksum; 0 is the header of the log.
    pub frame: u64,
    /// Where it begins in the file.
    pub offset: u64,
    /// How many synced commits are lost, at least.
    pub commits: u64,
}

impl std::fmt::Display for LogDamage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (file, offset, commits) = (self.file.display(), self.offset, self.commits);
        match self.frame {
            0 => write!(
                f,
                "the header of its write-ahead log (byte 0 of {file}) does not match its checksum, so nothing in the log can be read"
            ),
            frame => write!(
                f,
                "frame {frame} of its write-ahead log (byte {offset} of {file}) does not match its checksum, and synced commits \
                 from there on cannot be read, {commits} at least"
            ),
        }
    }
}

/// The log of a database.
pub(super) fn path_of(database: &Path) -> PathBuf {
    let mut log = database.as_os_str().to_owned();
    log.push("-wal");
    log.into()
}

/// Syncs the log that a process left behind when it was killed. The next connection takes a commit for stored that is complete in
/// the log but was never synced: without this, readers would see it, and a power cut could still take it back.
pub(super) fn sync(database: &Path) -> io::Result<()> {
    match File::open(path_of(database)) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        log => log?.sync_data(),
    }
}

/// Looks for synced commits that cannot be read. A server may be writing to the log: what one reading finds counts if the next
/// one finds the same.
pub(super) fn check(database: &Path) -> io::Result<Option<LogDamage>> {
    let file = path_of(database);
    let mut before = None;
    for _ in 0..READINGS_MAX {
        let found = match File::open(&file) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            log => read(BufReader::with_capacity(16 * FRAME_BYTES, log?))?,
        };
        let Some(found) = found else { return Ok(None) };
        if before.replace(found.clone()) == Some(found.clone()) {
            let Found { frame, commits, .. } = found;
            let offset = offset_of(frame);
            return Ok(Some(LogDamage {
                file,
                frame,
                offset,
                commits,
            }));
        }
    }
    Ok(None)
}

/// Whether the log of an open database holds a complete commit beyond those that SQLite has made: one that failed, after all of it
/// was written. If the process ends before the next commit overwrites it, the next start takes it for stored. An error
/// means that it may.
pub(super) fn holds_failed_commit(database: &Path) -> io::Result<bool> {
    let index = Index::read(database)?;
    let mut log = match File::open(path_of(database)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        log => log?,
    };
    let mut header = [0; HEADER_BYTES];
    if !fill(&mut log, &mut header)? {
        return Ok(false);
    }
    let is_big_endian = word(&header, 0) & 1 == 1;
    let order = ByteOrder { is_big_endian };
    let salts_of_log = salts(&header, 16);
    let mut sum = index.sum;
    if index.frames == 0 {
        // The first commit of a log, whose salts the index does not have yet if no log was before it.
        if index.salts != salts_of_log && index.salts != [0; 8] {
            return Ok(false);
        }
        sum = [word(&header, 24), word(&header, 28)];
    }
    log.seek(SeekFrom::Start(offset_of(index.frames + 1)))?;
    let mut frame = vec![0; FRAME_BYTES];
    while fill(&mut log, &mut frame)? {
        sum = order.frame_sum(sum, &frame);
        if sum != stored(&frame) || salts(&frame, 8) != salts_of_log {
            return Ok(false);
        }
        if word(&frame, 4) > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The commits that SQLite's shared index knows.
struct Index {
    frames: u64,
    /// Of the last frame.
    sum: Sum,
    salts: [u8; 8],
}

impl Index {
    /// Numbers are in the byte order of the machine.
    fn read(database: &Path) -> io::Result<Self> {
        let mut path = database.as_os_str().to_owned();
        path.push("-shm");
        let mut bytes = [0; INDEX_HEADER_BYTES];
        File::open(path)?.read_exact(&mut bytes)?;
        let word = |at| u32::from_ne_bytes(word(&bytes, at).to_be_bytes());
        Ok(Self {
            frames: word(16).into(),
            sum: [word(24), word(28)],
            salts: salts(&bytes, 32),
        })
    }
}

fn offset_of(frame: u64) -> u64 {
    let before = |frame: u64| HEADER_BYTES as u64 + (frame - 1) * FRAME_BYTES as u64;
    if frame == 0 { 0 } else { before(frame) }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Found {
    /// Of the log's header: another log is another finding.
    salts: [u8; 8],
    frame: u64,
    commits: u64,
}

/// A checksum; each continues the one before it.
type Sum = [u32; 2];

fn word(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_be_bytes(word)
}

fn salts(bytes: &[u8], at: usize) -> [u8; 8] {
    let mut salts = [0; 8];
    salts.copy_from_slice(&bytes[at..at + 8]);
    salts
}

#[derive(Clone, Copy)]
struct ByteOrder {
    is_big_endian: bool,
}

impl ByteOrder {
    fn continue_sum(self, [mut a, mut b]: Sum, bytes: &[u8]) -> Sum {
        let word = |bytes: [u8; 4]| {
            if self.is_big_endian {
                u32::from_be_bytes(bytes)
            } else {
                u32::from_le_bytes(bytes)
            }
        };
        let (words, _) = bytes.as_chunks::<4>();
        let (pairs, _) = words.as_chunks::<2>();
        for &[first, second] in pairs {
            a = a.wrapping_add(word(first)).wrapping_add(b);
            b = b.wrapping_add(word(second)).wrapping_add(a);
        }
        [a, b]
    }

    /// The checksum of a frame that follows one with the checksum `before`.
    fn frame_sum(self, before: Sum, frame: &[u8]) -> Sum {
        let head = self.continue_sum(before, &frame[..8]);
        self.continue_sum(head, &frame[FRAME_HEADER_BYTES..])
    }
}

/// What the check of a frame needs of the one before it; the header counts as frame 0.
struct Before {
    salts: [u8; 8],
    /// Its checksum as stored, and as its bytes give it: one of them is right if a single bit flipped.
    sums: [Proof; 2],
}

/// A checksum that the next frame may continue.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Proof {
    sum: Sum,
    /// The next frame can continue it only if a commit ended here and was synced.
    of_commit: bool,
}

impl Before {
    fn of_header(header: &[u8], order: ByteOrder) -> Self {
        let stored = [word(header, 24), word(header, 28)];
        let computed = order.continue_sum([0, 0], &header[..24]);
        Self {
            salts: salts(header, 16),
            sums: [stored, computed].map(|sum| Proof {
                sum,
                of_commit: false,
            }),
        }
    }
}

/// Reads a log to its end; returns the synced commits that cannot be read.
fn read(mut log: impl Read) -> io::Result<Option<Found>> {
    let mut header = [0; HEADER_BYTES];
    if !fill(&mut log, &mut header)? {
        return Ok(None);
    }
    let is_big_endian = word(&header, 0) & 1 == 1;
    let order = ByteOrder { is_big_endian };
    let before = Before::of_header(&header, order);
    let is_sound = before.sums[0] == before.sums[1]
        && word(&header, 0) & !1 == MAGIC
        && word(&header, 4) == VERSION;
    if is_sound && word(&header, 8) as usize != PAGE_BYTES {
        return Ok(None);
    }
    let mut check = Check {
        order,
        salts: before.salts,
        before,
        damaged: (!is_sound).then_some(0),
        is_proven: false,
        commits: 0,
    };
    let mut frame = vec![0; FRAME_BYTES];
    let mut number = 0;
    while fill(&mut log, &mut frame)? {
        number += 1;
        if number == 1 && !is_sound {
            // The bit of the header that flipped may be the one of the byte order.
            if check.continued(&frame).is_none() {
                let is_big_endian = !is_big_endian;
                check.order = ByteOrder { is_big_endian };
                check.before = Before::of_header(&header, check.order);
            }
            // The header was synced before the first frame was written.
            check.is_proven = word(&frame, 0) > 0 && check.continued(&frame).is_some();
        }
        check.add(number, &frame);
    }
    let damaged = check.damaged.filter(|_| check.is_proven);
    Ok(damaged.map(|frame| Found {
        salts: check.salts,
        frame,
        commits: check.commits,
    }))
}

/// Fills the buffer; false at the end of the file, whose last frame may be incomplete.
fn fill(log: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match log.read_exact(buffer) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        read => read.map(|()| true),
    }
}

struct Check {
    order: ByteOrder,
    /// Of the header: frames with others are from before the log was restarted.
    salts: [u8; 8],
    before: Before,
    /// The first frame that does not match its checksum.
    damaged: Option<u64>,
    /// What SQLite drops because of it was synced.
    is_proven: bool,
    /// Commits behind it that were synced.
    commits: u64,
}

impl Check {
    fn add(&mut self, number: u64, frame: &[u8]) {
        let own_salts = salts(frame, 8);
        let continued = self.continued(frame);
        if self.damaged.is_some() {
            let is_current = own_salts == self.salts
                || self.before.salts == self.salts
                || self.damaged == Some(0);
            if is_current && continued.is_some_and(|before| before.of_commit) {
                self.is_proven = true;
                self.commits += 1;
            }
        } else if continued.is_none() || own_salts != self.salts || word(frame, 0) == 0 {
            self.damaged = Some(number);
        }
        self.before = Before {
            salts: own_salts,
            sums: self.proofs(number, frame, continued),
        };
    }

    /// The checksum before it that a frame continues.
    fn continued(&self, frame: &[u8]) -> Option<Proof> {
        let continues = |before: &Proof| self.order.frame_sum(before.sum, frame) == stored(frame);
        let [first, second] = self.before.sums;
        let either = continues(&first).then_some(first);
        either.or_else(|| (second.sum != first.sum && continues(&second)).then_some(second))
    }

    /// What a frame that follows this one proves.
    fn proofs(&self, number: u64, frame: &[u8], continued: Option<Proof>) -> [Proof; 2] {
        let marked = word(frame, 4) > 0;
        let stored = stored(frame);
        if continued.is_some() {
            let proof = Proof {
                sum: stored,
                of_commit: marked,
            };
            return [proof, proof];
        }
        let computed = self.order.frame_sum(self.before.sums[0].sum, frame);
        // The mark and the checksum are of the same write if they are in one sector.
        let of_commit = (marked && is_in_one_sector(number)) || self.ended_commit(number, frame);
        [
            Proof {
                sum: stored,
                of_commit,
            },
            Proof {
                sum: computed,
                of_commit: marked,
            },
        ]
    }

    /// Whether the first damaged frame is the last one of a commit but for a bit of the mark that says so.
    fn ended_commit(&self, number: u64, frame: &[u8]) -> bool {
        let mut repaired = frame.to_vec();
        self.damaged == Some(number)
            && (0..u32::BITS).any(|bit| {
                let mark = word(frame, 4) ^ (1 << bit);
                repaired[4..8].copy_from_slice(&mark.to_be_bytes());
                mark > 0 && self.continued(&repaired).is_some()
            })
    }
}

/// A frame's checksum.
fn stored(frame: &[u8]) -> Sum {
    [word(frame, 16), word(frame, 20)]
}

/// Whether a disk writes the header of a frame as a whole.
fn is_in_one_sector(frame: u64) -> bool {
    let begin = offset_of(frame);
    begin / SECTOR_BYTES == (begin + FRAME_HEADER_BYTES as u64 - 1) / SECTOR_BYTES
}

#[cfg(test)]
mod tests;
