//! Logs put together frame by frame: what crashes leave is no damage, and what flips is.

use super::*;

const ORDER: ByteOrder = ByteOrder {
    is_big_endian: false,
};

/// A log whose commits have so many frames each.
struct Log {
    bytes: Vec<u8>,
    sum: Sum,
    salts: [u8; 8],
}

impl Log {
    fn new(salt: u8) -> Self {
        let mut bytes = vec![0; HEADER_BYTES];
        for (at, word) in [(0, MAGIC), (4, VERSION), (8, 4096)] {
            bytes[at..at + 4].copy_from_slice(&word.to_be_bytes());
        }
        bytes[16..24].fill(salt);
        let sum = ORDER.continue_sum([0, 0], &bytes[..24]);
        bytes[24..28].copy_from_slice(&sum[0].to_be_bytes());
        bytes[28..32].copy_from_slice(&sum[1].to_be_bytes());
        Self {
            bytes,
            sum,
            salts: [salt; 8],
        }
    }

    /// Appends a commit, whose pages are filled with this byte.
    fn commit(&mut self, frames: usize, content: u8) -> &mut Self {
        for frame in 1..=frames {
            let mut bytes = vec![content; FRAME_BYTES];
            bytes[..4].copy_from_slice(&7_u32.to_be_bytes());
            let mark = if frame == frames { 9_u32 } else { 0 };
            bytes[4..8].copy_from_slice(&mark.to_be_bytes());
            bytes[8..16].copy_from_slice(&self.salts);
            self.sum = ORDER.frame_sum(self.sum, &bytes);
            bytes[16..20].copy_from_slice(&self.sum[0].to_be_bytes());
            bytes[20..24].copy_from_slice(&self.sum[1].to_be_bytes());
            self.bytes.extend(bytes);
        }
        self
    }

    /// A copy to which other commits are appended.
    fn fork(&self) -> Self {
        Self {
            bytes: self.bytes.clone(),
            ..*self
        }
    }

    fn frames(&self) -> usize {
        self.bytes.len() / FRAME_BYTES
    }
}

/// Where a frame begins, from 1.
fn begin(frame: usize) -> usize {
    HEADER_BYTES + (frame - 1) * FRAME_BYTES
}

/// A file in which `new` was written over `old`.
fn over(old: &[u8], new: &[u8]) -> Vec<u8> {
    let rest = old.get(new.len()..).unwrap_or_default();
    [new, rest].concat()
}

fn found(bytes: &[u8]) -> Option<(u64, u64)> {
    let found = read(bytes).unwrap();
    found.map(|found| (found.frame, found.commits))
}

fn flipped(bytes: &[u8], byte: usize, bit: u32) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[byte] ^= 1 << bit;
    bytes
}

#[test]
fn a_sound_log_has_no_damage() {
    let mut log = Log::new(1);
    assert_eq!(found(&[]), None);
    assert_eq!(found(&log.bytes), None);
    log.commit(3, 1).commit(1, 2).commit(4, 3);
    assert_eq!(found(&log.bytes), None);
    assert_eq!(found(&log.bytes[..begin(6) + 100]), None, "torn at its end");
}

/// Frames of a commit whose sync has not returned reach the disk in any order.
#[test]
fn the_torn_last_commit_is_no_damage() {
    let mut log = Log::new(1);
    log.commit(3, 1).commit(1, 2).commit(4, 3);
    for frame in 5..=8 {
        let torn = flipped(&log.bytes, begin(frame) + 99, 3);
        assert_eq!(found(&torn), None, "frame {frame}");
    }
}

/// Each of two crashes tore a commit, and left frames with commit marks behind the next ones.
#[test]
fn rests_of_torn_commits_are_no_damage() {
    let mut log = Log::new(1);
    log.commit(2, 1);
    let mut first = log.fork();
    first.commit(10, 2);
    log.commit(2, 3);
    let mut second = log.fork();
    second.commit(4, 4);
    let torn = flipped(&second.bytes, begin(5) + 40, 0);
    let disk = over(&over(&first.bytes, &torn), &log.bytes);
    assert_eq!(disk.len(), first.bytes.len());
    assert_eq!(found(&disk), None);
    // The next commit is written over one frame of the rest.
    log.commit(1, 5);
    assert_eq!(found(&over(&disk, &log.bytes)), None);
}

/// The frames from before the restart of the log lie behind it.
#[test]
fn frames_of_an_older_log_are_no_damage() {
    let mut old = Log::new(1);
    old.commit(2, 1).commit(2, 2).commit(2, 3).commit(2, 4);
    let mut new = Log::new(2);
    new.commit(3, 5);
    let disk = over(&old.bytes, &new.bytes);
    assert_eq!(found(&disk), None);
    assert_eq!(found(&flipped(&disk, begin(5) + 50, 1)), None);
}

#[test]
fn every_bit_before_the_last_commit_is_found() {
    let mut log = Log::new(1);
    log.commit(2, 1).commit(1, 2).commit(3, 3);
    assert_eq!(log.frames(), 6);
    let headers = (0..HEADER_BYTES).map(|byte| (0, byte));
    let frames = (1..=3).flat_map(|frame| {
        let bytes = (0..FRAME_HEADER_BYTES).chain([24, 999, FRAME_BYTES - 1]);
        bytes.map(move |byte| (frame, begin(frame) + byte))
    });
    for (frame, byte) in headers.chain(frames) {
        for bit in 0..8 {
            let found = found(&flipped(&log.bytes, byte, bit));
            let place = found.map(|(frame, _)| frame);
            assert_eq!(place, Some(frame as u64), "byte {byte}, bit {bit}");
        }
    }
}

#[test]
fn lost_commits_are_counted() {
    let mut log = Log::new(1);
    log.commit(2, 1).commit(1, 2).commit(3, 3).commit(1, 4);
    assert_eq!(found(&flipped(&log.bytes, begin(1) + 50, 0)), Some((1, 3)));
    assert_eq!(found(&flipped(&log.bytes, begin(4) + 50, 0)), Some((4, 1)));
    // A page that is zero takes the proof of its own commit with it.
    let mut zeroed = log.bytes.clone();
    zeroed[begin(3)..begin(4)].fill(0);
    assert_eq!(found(&zeroed), Some((3, 1)));
}

/// The mark of a new commit and the checksum of an older one, in one frame, come from two writes if a sector ends between them.
#[test]
fn a_mark_and_a_checksum_of_two_sectors_prove_nothing() {
    let straddles = |frame: usize| !is_in_one_sector(frame as u64);
    let frame = (1..1000).find(|frame| straddles(*frame)).expect("some do");
    let mut log = Log::new(1);
    log.commit(frame - 1, 1);
    let mut old = log.fork();
    old.commit(4, 2);
    let mut new = log.fork();
    new.commit(1, 3);
    let mut disk = old.bytes.clone();
    let torn = begin(frame)..begin(frame) + 8;
    disk[torn.clone()].copy_from_slice(&new.bytes[torn]);
    assert_eq!(found(&disk), None);
}
