//! Single bits that flip in the database file and in its write-ahead log: each is harmless, or found and named. Only in the last
//! commit of a log, one looks like a commit that was never synced.

use std::collections::BTreeMap;
use std::path::Path;

use kennel_store::{Damage, Offline, OpenError, Store};

use crate::budget;
use crate::disk::{Disk, with_disk};
use crate::oracle::Oracle;
use crate::workload::{End, TestStore, Workload, open, settle};

const PAGE: usize = 4096;
const LOG_HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
const FRAME: usize = FRAME_HEADER + PAGE;
const SECTOR: usize = 512;

const DATABASE: &str = "kennel.db";
const LOG: &str = "kennel.db-wal";

/// Cases on the files of one store.
const FLIPS: usize = 400;

type State = BTreeMap<String, String>;

/// The files of one store at one moment, and what they hold.
struct Files {
    database: Vec<u8>,
    /// Empty after a clean end.
    log: Vec<u8>,
    state: State,
    /// Before the last commit, and before the one before that.
    earlier: [State; 2],
    oracle: Oracle,
}

fn state(store: &TestStore) -> State {
    let records = store.range("", None, None).records;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    records
        .iter()
        .map(|record| (record.key.to_string(), text(&record.value)))
        .collect()
}

/// The files of a store that a process was killed with, or that was closed.
async fn files(disk: &Disk, random: &mut fastrand::Rng, is_closed: bool) -> Files {
    let dir = disk.directory("written");
    let store = open(&dir).unwrap();
    let mut oracle = Oracle::default();
    let mut workload = Workload::new(random.fork());
    workload.without_lazy = true;
    for _ in 0..random.usize(12..40) {
        workload.write(&store, |event| oracle.add(&event)).await;
    }
    // The last two commits are of one write each.
    let mut earlier: Vec<State> = Vec::new();
    while earlier.len() < 2 {
        let before = state(&store);
        if workload.write(&store, |event| oracle.add(&event)).await == [End::Stored] {
            earlier.insert(0, before);
        } else {
            earlier.clear();
        }
    }
    settle(&store).await;
    let state = state(&store);
    if is_closed {
        store.close().await;
    }
    let read = |name: &str| std::fs::read(dir.join(name)).unwrap_or_default();
    Files {
        database: read(DATABASE),
        log: read(LOG),
        state,
        earlier: earlier.try_into().expect("there are two"),
        oracle,
    }
}

impl Files {
    fn write_to(&self, dir: &Path) {
        std::fs::write(dir.join(DATABASE), &self.database).unwrap();
        if !self.log.is_empty() {
            std::fs::write(dir.join(LOG), &self.log).unwrap();
        }
    }

    /// The frames that end the commits of the log, from 1.
    fn commits(&self) -> Vec<usize> {
        let salts = &self.log[16..24];
        let frames = self.log[LOG_HEADER..].chunks_exact(FRAME);
        let current = frames.take_while(|frame| &frame[8..16] == salts);
        let ends = current
            .enumerate()
            .filter(|(_, frame)| frame[4..8] != [0; 4]);
        ends.map(|(index, _)| index + 1).collect()
    }

    /// How many commits at the end of the log a flip in this frame may cost without being found.
    fn unprotected(&self, frame: usize) -> usize {
        let commits = self.commits();
        let after = commits.iter().filter(|end| **end >= frame).count();
        let begin = LOG_HEADER + (frame.saturating_sub(1)) * FRAME;
        let straddles = begin / SECTOR != (begin + FRAME_HEADER - 1) / SECTOR;
        match after {
            1 => 1,
            // Its mark and its checksum are in two sectors, so that they prove nothing about each other.
            2 if straddles && commits.contains(&frame) => 2,
            _ => 0,
        }
    }
}

impl Files {
    /// Whether this is the state at the end, or one of the last commits earlier.
    fn is_at_end(&self, commits: usize, shown: &State) -> Result<Effect, String> {
        let mut possible = self.earlier[..commits].iter().chain([&self.state]);
        if possible.any(|state| state == shown) {
            return Ok(Effect::Undecidable);
        }
        Err(format!(
            "it holds {:?}, as it never did at the end",
            shown.keys()
        ))
    }

    /// Whether everything is shown and nothing set aside; an error if something else is shown, or something is missing that is
    /// not named.
    fn is_complete(&self, shown: &State, damaged: &[&str]) -> Result<bool, String> {
        for (key, value) in shown {
            if self.state.get(key) != Some(value) {
                return Err(format!("{key} has a value that it did not have at the end"));
            }
        }
        let is_named = |key: &str| shown.contains_key(key) || damaged.contains(&key);
        let missing = self.state.keys().find(|key| !is_named(key));
        // A value whose key is damaged is named by that.
        match missing.filter(|_| self.state.len() > shown.len() + damaged.len()) {
            Some(missing) => Err(format!("{missing} is missing; damaged: {damaged:?}")),
            None => Ok(self.state.len() == shown.len() && damaged.is_empty()),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Flip {
    in_log: bool,
    byte: usize,
    bit: u32,
}

impl Flip {
    /// Any bit, with more weight on the headers of files, pages and frames.
    fn random(files: &Files, random: &mut fastrand::Rng) -> Self {
        let in_log = !files.log.is_empty() && random.bool();
        let (bytes, first, header, unit) = if in_log {
            (files.log.len(), LOG_HEADER, FRAME_HEADER, FRAME)
        } else {
            (files.database.len(), 100, 40, PAGE)
        };
        let byte = match random.u32(..4) {
            0 => random.usize(..first),
            1 if in_log => {
                first + random.usize(..(bytes - first) / unit) * unit + random.usize(..header)
            }
            1 => random.usize(..bytes / unit) * unit + random.usize(..header),
            _ => random.usize(..bytes),
        };
        let bit = random.u32(..8);
        Self { in_log, byte, bit }
    }

    /// The frame of the log that has the byte; 0 for the header.
    fn frame(self) -> usize {
        self.byte
            .checked_sub(LOG_HEADER)
            .map_or(0, |byte| byte / FRAME + 1)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    Harmless,
    Refused,
    SetAside,
    /// As if the last commit had not been made.
    Undecidable,
}

/// What a flip does; an error if a wrong value is served, or one is missing that is not named.
fn effect(disk: &Disk, files: &Files, flip: Flip) -> Result<Effect, String> {
    let dir = disk.directory("flipped");
    files.write_to(&dir);
    let path = dir.join(if flip.in_log { LOG } else { DATABASE });
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[flip.byte] ^= 1 << flip.bit;
    std::fs::write(&path, bytes).unwrap();
    let frame = flip.frame();
    let is_live = flip.in_log && files.commits().last().is_some_and(|last| frame <= *last);
    let unprotected = if is_live { files.unprotected(frame) } else { 0 };
    let found = Offline::log_damage(&dir).map_err(|error| error.to_string())?;
    if found.is_some() && !is_live {
        return Err(format!("a sound log is called damaged: {found:?}"));
    }
    let store = match open(&dir) {
        Ok(store) => store,
        Err(error) => {
            let text = error.to_string();
            if !text.contains(&*dir.join(DATABASE).to_string_lossy()) {
                return Err(format!("an error names no file: {text}"));
            }
            let is_of_log = matches!(&error, OpenError::Damaged { reason: Damage::Log(damage), .. } if Some(damage) == found.as_ref());
            if is_live && unprotected == 0 && !is_of_log {
                return Err(format!("the error does not name the log: {text}"));
            }
            return Ok(Effect::Refused);
        }
    };
    let shown = state(&store);
    let damaged: Vec<&str> = store.damaged().iter().map(|value| &*value.key).collect();
    if is_live && unprotected == 0 {
        return Err(format!(
            "the store opens with {} of {} keys",
            shown.len(),
            files.state.len()
        ));
    }
    if unprotected > 0 {
        return files.is_at_end(unprotected, &shown);
    }
    let complete = files.is_complete(&shown, &damaged)?;
    if !complete {
        return Ok(Effect::SetAside);
    }
    files.oracle.compare_revision(&store)?;
    Ok(Effect::Harmless)
}

#[test]
fn flipped_bits_are_harmless_or_found() {
    with_disk("flips::flipped_bits_are_harmless_or_found", |disk| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let mut random = fastrand::Rng::with_seed(kennel_test_support::fresh_seed());
        let budget = budget();
        let mut effects: BTreeMap<String, usize> = BTreeMap::new();
        while budget.is_left() {
            let is_closed = random.u32(..3) == 0;
            let files = runtime.block_on(files(disk, &mut random, is_closed));
            for _ in 0..FLIPS {
                let flip = Flip::random(&files, &mut random);
                let effect = effect(disk, &files, flip);
                let effect = effect
                    .unwrap_or_else(|wrong| panic!("{flip:?} in frame {}: {wrong}", flip.frame()));
                let place = if flip.in_log { "log" } else { "database" };
                *effects.entry(format!("{place}: {effect:?}")).or_default() += 1;
                if !budget.is_left() {
                    break;
                }
            }
        }
        eprintln!("{effects:?}");
        assert!(effects["log: Refused"] > 50 && effects["database: Refused"] > 10);
    });
}

/// The log of a killed store, with one bit of its first frame changed, is refused with the place and the remedy.
#[test]
fn a_flipped_bit_in_the_log_is_named() {
    with_disk("flips::a_flipped_bit_in_the_log_is_named", |disk| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        // A log that has just been begun anew may have one commit.
        let mut files = (0..100)
            .map(|seed| {
                let mut random = fastrand::Rng::with_seed(seed);
                runtime.block_on(files(disk, &mut random, false))
            })
            .find(|files| files.commits().len() > 2)
            .expect("some log has three commits");
        let commits = files.commits();
        let frame = commits[0];
        let offset = LOG_HEADER + (frame - 1) * FRAME;
        files.log[offset + 2000] ^= 4;
        let dir = disk.directory("named");
        files.write_to(&dir);
        let refused = open(&dir).err().expect("it does not open").to_string();
        let place = format!(
            "frame {frame} of its write-ahead log (byte {offset} of {}",
            dir.join(LOG).display()
        );
        assert!(
            refused.contains(&place) && refused.contains("restore a backup"),
            "{refused}"
        );
        assert_eq!(
            std::fs::read(dir.join(LOG)).unwrap(),
            files.log,
            "nothing was changed"
        );
        let snapshot = Offline::open(&dir).unwrap().snapshot(&dir.join("copy.db"));
        assert!(snapshot.is_err_and(|error| error.to_string().contains(&place)));
    });
}

/// No other number in the file could be lower without being noticed.
#[test]
fn revisions_go_on_beyond_a_damaged_counter() {
    with_disk("flips::revisions_go_on_beyond_a_damaged_counter", |disk| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let mut random = fastrand::Rng::with_seed(1);
        let files = runtime.block_on(files(disk, &mut random, true));
        for change in [
            "reserved = reserved - 1",
            "reserved = -1",
            "reserved = 'x'",
            "checksum = 7",
        ] {
            let dir = disk.directory("damaged");
            files.write_to(&dir);
            let database = rusqlite::Connection::open(dir.join(DATABASE)).unwrap();
            database
                .execute(&format!("UPDATE revision SET {change}"), [])
                .unwrap();
            drop(database);
            let store = open(&dir).unwrap();
            files.oracle.compare_revision(&store).unwrap();
            assert!(store.revision() > 1 << 32, "{change}");
            assert_eq!(state(&store), files.state);
        }
    });
}
