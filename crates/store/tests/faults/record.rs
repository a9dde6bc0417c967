//! What a disk was asked to do, as the library recorded it, and what it may hold after a power cut.

use std::collections::BTreeMap;
use std::path::Path;

use kennel_store::LOCK_FILE;

/// The least that a disk writes as a whole.
const SECTOR: usize = 512;

/// The file whose writes are marks of the test among the operations.
pub(crate) const MARKS: &str = "marks";

#[derive(Clone, Debug)]
pub(crate) enum Operation {
    Write {
        name: String,
        offset: usize,
        data: Vec<u8>,
    },
    Truncate {
        name: String,
        bytes: usize,
    },
    Sync(String),
    SyncDirectory,
    Create(String),
    Unlink(String),
    /// The event of this number has happened.
    Mark(usize),
}

/// Reads a record of what was done below the directory of this name.
pub(crate) fn parse(mut record: &[u8], directory: &str) -> Vec<Operation> {
    let mut operations = Vec::new();
    while !record.is_empty() {
        let kind = u32::from_ne_bytes(take(&mut record));
        let name_bytes = u32::from_ne_bytes(take(&mut record)) as usize;
        let offset = usize::try_from(u64::from_ne_bytes(take(&mut record))).unwrap();
        let data_bytes = usize::try_from(u64::from_ne_bytes(take(&mut record))).unwrap();
        let (name, rest) = record.split_at(name_bytes);
        let (data, rest) = rest.split_at(data_bytes);
        record = rest;
        let path = std::str::from_utf8(name).unwrap();
        let name = path
            .strip_prefix(directory)
            .expect("nothing else is written");
        let name = name.trim_start_matches('/').to_owned();
        // The index is rebuilt at each start, and the lock is empty.
        let is_mark = name == MARKS;
        if name.ends_with("-shm") || name == LOCK_FILE || (is_mark && kind != 1) {
            continue;
        }
        operations.push(match kind {
            1 if is_mark => Operation::Mark(usize::from_ne_bytes(data.try_into().unwrap())),
            1 => Operation::Write {
                name,
                offset,
                data: data.to_vec(),
            },
            2 if name.is_empty() => Operation::SyncDirectory,
            2 => Operation::Sync(name),
            3 => Operation::Truncate {
                name,
                bytes: offset,
            },
            4 => Operation::Create(name),
            5 => Operation::Unlink(name),
            other => panic!("operation {other}"),
        });
    }
    operations
}

fn take<const N: usize>(bytes: &mut &[u8]) -> [u8; N] {
    let all = *bytes;
    let (first, rest) = all.split_first_chunk().expect("records are whole");
    *bytes = rest;
    *first
}

#[derive(Clone, Debug)]
enum Change {
    Write { offset: usize, data: Vec<u8> },
    Truncate(usize),
}

#[derive(Clone, Debug, Default)]
struct File {
    durable: Vec<u8>,
    /// Changes that no sync has followed.
    pending: Vec<Change>,
}

#[derive(Clone, Debug)]
enum Entry {
    Create(String, usize),
    Unlink(String),
}

/// One directory on a disk with a cache.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    /// By number; a name may lead to several, one after the other.
    files: Vec<File>,
    /// What the process sees.
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    /// Entries that no sync of the directory has followed.
    pending_names: Vec<Entry>,
}

impl Change {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Self::Write { offset, data } => {
                let end = offset + data.len();
                if content.len() < end {
                    content.resize(end, 0);
                }
                content[*offset..end].copy_from_slice(data);
            }
            Self::Truncate(bytes) => content.resize(*bytes, 0),
        }
    }

    /// In pieces that a disk writes as a whole.
    fn sectors(&self) -> Vec<Self> {
        let Self::Write { offset, data } = self else {
            return vec![self.clone()];
        };
        let mut sectors = Vec::new();
        let mut at = *offset;
        let mut rest = &data[..];
        while !rest.is_empty() {
            let bytes = rest.len().min(SECTOR - at % SECTOR);
            let (sector, others) = rest.split_at(bytes);
            sectors.push(Self::Write {
                offset: at,
                data: sector.to_vec(),
            });
            (at, rest) = (at + bytes, others);
        }
        sectors
    }
}

impl File {
    fn cached(&self) -> Vec<u8> {
        let mut content = self.durable.clone();
        for change in &self.pending {
            change.apply(&mut content);
        }
        content
    }

    /// What is left of the changes that were not synced: none, all, the first ones, or any sectors of any of them.
    fn after_power_cut(&self, random: &mut fastrand::Rng) -> Vec<u8> {
        let mut content = self.durable.clone();
        let first = random.usize(..=self.pending.len());
        let kept: Vec<Change> = match random.u32(..4) {
            0 => vec![],
            1 => self.pending.clone(),
            2 => self.pending[..first].to_vec(),
            _ => {
                let sectors = self.pending.iter().flat_map(Change::sectors);
                let chance = random.f64();
                sectors.filter(|_| random.f64() < chance).collect()
            }
        };
        for change in &kept {
            change.apply(&mut content);
        }
        content
    }
}

fn enter(names: &mut BTreeMap<String, usize>, entry: &Entry) {
    match entry {
        Entry::Create(name, file) => drop(names.insert(name.clone(), *file)),
        Entry::Unlink(name) => drop(names.remove(name)),
    }
}

impl Model {
    pub(crate) fn apply(&mut self, operation: &Operation) {
        match operation {
            Operation::Write { name, offset, data } => self.change(
                name,
                Change::Write {
                    offset: *offset,
                    data: data.clone(),
                },
            ),
            Operation::Truncate { name, bytes } => self.change(name, Change::Truncate(*bytes)),
            Operation::Sync(name) => {
                let file = &mut self.files[self.names[name]];
                file.durable = file.cached();
                file.pending.clear();
            }
            Operation::SyncDirectory => {
                for entry in self.pending_names.drain(..) {
                    enter(&mut self.durable_names, &entry);
                }
            }
            Operation::Create(name) => {
                self.files.push(File::default());
                self.enter(Entry::Create(name.clone(), self.files.len() - 1));
            }
            Operation::Unlink(name) => self.enter(Entry::Unlink(name.clone())),
            Operation::Mark(_) => {}
        }
    }

    fn change(&mut self, name: &str, change: Change) {
        self.files[self.names[name]].pending.push(change);
    }

    fn enter(&mut self, entry: Entry) {
        enter(&mut self.names, &entry);
        self.pending_names.push(entry);
    }

    /// What the disk may hold after a power cut. Entries of directories reach it in order, the rest in any.
    pub(crate) fn power_cut(&self, random: &mut fastrand::Rng) -> Self {
        let mut names = self.durable_names.clone();
        let kept = random.usize(..=self.pending_names.len());
        for entry in &self.pending_names[..kept] {
            enter(&mut names, entry);
        }
        let file = |file: &File| File {
            durable: file.after_power_cut(random),
            pending: vec![],
        };
        Self {
            files: self.files.iter().map(file).collect(),
            durable_names: names.clone(),
            names,
            pending_names: vec![],
        }
    }

    /// Writes the files as a process sees them.
    pub(crate) fn write_to(&self, dir: &Path) {
        for (name, file) in &self.names {
            std::fs::write(dir.join(name), self.files[*file].cached()).unwrap();
        }
    }
}
