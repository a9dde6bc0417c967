//! A process that opens a store and writes to it, and reports what it does on its standard output.
//!
//! The process is this test binary again, running the same test with [`CHILD`] set. It prints, one line
//! each: `open R` and a `have` per record after opening, `ready`, then `try` before and `ack` after
//! every write. The parent kills or traces it and reads the lines.

use std::ffi::OsString;
use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use kennel_store::{Durability, Revision};

use crate::common::{TestStore, create_op, delete_op, open, open_etcd_at, text, update_op};

/// Set for the child to its data directory, or to the address of its etcd.
const CHILD: &str = "KENNEL_STORE_TEST_CHILD";
/// The seed of the child's choices; 0 if it is not set.
pub(crate) const SEED: &str = "KENNEL_STORE_TEST_SEED";
/// Concurrent writers, so that batches hold several writes.
const TASKS: usize = 8;
/// Keys per writer, few enough that each is created, changed and deleted all the time.
const KEYS: u64 = 6;

/// The data directory, when this process is the child.
pub(crate) fn directory() -> Option<PathBuf> {
    std::env::var_os(CHILD).map(PathBuf::from)
}

/// The arguments that make this binary run one test, which must then act as the child.
pub(crate) fn arguments(test: &str) -> Vec<OsString> {
    let binary = std::env::current_exe().expect("a running test has a binary");
    vec![
        binary.into(),
        "--exact".into(),
        test.into(),
        "--nocapture".into(),
    ]
}

/// A command for the child, wrapped in `wrapper` if that is not empty.
pub(crate) fn command(wrapper: &[&str], test: &str, dir: &Path) -> Command {
    let mut words: Vec<OsString> = wrapper.iter().map(OsString::from).collect();
    words.extend(arguments(test));
    let mut command = Command::new(&words[0]);
    command
        .args(&words[1..])
        .env(CHILD, dir)
        .env_remove("RUST_TEST_THREADS");
    command
}

/// Writes one whole line with one system call.
pub(crate) fn print(line: &impl fmt::Display) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .expect("the parent reads");
}

/// How a write was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Put,
    Renew,
    Delete,
}

/// One line of the child's report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Open {
        revision: Revision,
    },
    Have {
        key: String,
        sequence: u64,
        modified: Revision,
    },
    Ready,
    Try {
        kind: Kind,
        key: String,
        sequence: u64,
    },
    Ack {
        kind: Kind,
        key: String,
        sequence: u64,
        revision: Revision,
    },
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open { revision } => write!(f, "open {revision}"),
            Self::Have {
                key,
                sequence,
                modified,
            } => write!(f, "have {key} {sequence} {modified}"),
            Self::Ready => write!(f, "ready"),
            Self::Try {
                kind,
                key,
                sequence,
            } => write!(f, "try {kind:?} {key} {sequence}"),
            Self::Ack {
                kind,
                key,
                sequence,
                revision,
            } => {
                write!(f, "ack {kind:?} {key} {sequence} {revision}")
            }
        }
    }
}

impl Line {
    /// `None` for lines of the test harness.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        // The harness writes "test name ... " without an end before the child's first line.
        let line = line.rsplit("... ").next().unwrap_or(line);
        let words: Vec<&str> = line.split(' ').collect();
        let kind = |word: &str| match word {
            "Put" => Some(Kind::Put),
            "Renew" => Some(Kind::Renew),
            "Delete" => Some(Kind::Delete),
            _ => None,
        };
        let number = |word: &str| word.parse().ok();
        Some(match words[..] {
            ["open", revision] => Self::Open {
                revision: number(revision)?,
            },
            ["have", key, sequence, modified] => Self::Have {
                key: key.to_owned(),
                sequence: number(sequence)?,
                modified: number(modified)?,
            },
            ["ready"] => Self::Ready,
            ["try", how, key, sequence] => Self::Try {
                kind: kind(how)?,
                key: key.to_owned(),
                sequence: number(sequence)?,
            },
            ["ack", how, key, sequence, revision] => Self::Ack {
                kind: kind(how)?,
                key: key.to_owned(),
                sequence: number(sequence)?,
                revision: number(revision)?,
            },
            _ => return None,
        })
    }
}

/// A value that shows whether it is whole: `marker length filler sum`.
pub(crate) fn value(key: &str, sequence: u64, length: usize) -> String {
    let mut value = format!("{} {length} ", marker(key, sequence));
    value.extend(std::iter::repeat_n('x', length));
    let sum = checksum(&value);
    format!("{value} {sum:016x}")
}

/// What names one write among all, in a value as in a trace.
pub(crate) fn marker(key: &str, sequence: u64) -> String {
    format!("<{key}#{sequence}>")
}

/// The sequence number of a whole value.
pub(crate) fn sequence(key: &str, value: &str) -> u64 {
    let (body, sum) = value.rsplit_once(' ').expect("a value ends in its sum");
    assert_eq!(
        format!("{:016x}", checksum(body)),
        sum,
        "half a value under {key}"
    );
    let inner = body
        .strip_prefix(&format!("<{key}#"))
        .expect("a value names its key");
    inner
        .split('>')
        .next()
        .and_then(|n| n.parse().ok())
        .expect("a value has a number")
}

/// FNV-1a: enough to notice a value put together from two.
fn checksum(text: &str) -> u64 {
    let step = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// The child process: opens, reports what it found, and writes `writes` times per task.
pub(crate) fn run(place: &Path, writes: usize, longest: usize) -> TestStore {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime starts");
    let store = match place.to_str().filter(|place| place.starts_with("etcd://")) {
        Some(etcd) => runtime.block_on(open_etcd_at(etcd)),
        None => open(place),
    };
    print(&Line::Open {
        revision: store.revision(),
    });
    for record in store.range("", None, None).records {
        let sequence = sequence(&record.key, &text(&record.value));
        print(&Line::Have {
            key: record.key.to_string(),
            sequence,
            modified: record.modified,
        });
    }
    print(&Line::Ready);
    let seed = std::env::var(SEED).map_or(0, |text| text.parse().expect("a seed is a number"));
    let mut seeds = fastrand::Rng::with_seed(seed);
    runtime.block_on(async {
        let tasks: Vec<_> = (0..TASKS)
            .map(|task| {
                let random = seeds.fork();
                tokio::spawn(write_on(store.clone(), task, random, writes, longest))
            })
            .collect();
        for task in tasks {
            task.await.expect("a writing task does not panic");
        }
    });
    store
}

async fn write_on(
    store: TestStore,
    task: usize,
    mut random: fastrand::Rng,
    writes: usize,
    longest: usize,
) {
    for _ in 0..writes {
        let key = format!("/a/{task}/{}", random.u64(..KEYS));
        let current = store.get(&key);
        // A sequence beyond every earlier one, whatever happened to those: the revision's successor.
        let next = store.revision() + 1;
        let body = value(&key, next, random.usize(..longest));
        let (kind, op) = match (current, random.u32(..10)) {
            (None, _) => (Kind::Put, create_op(&key, &body)),
            (Some(record), 0 | 1) => (Kind::Delete, delete_op(&key, record.modified)),
            (Some(record), 2..5) => (
                Kind::Renew,
                update_op(&key, record.modified, &body, Durability::Lazy),
            ),
            (Some(record), _) => (
                Kind::Put,
                update_op(&key, record.modified, &body, Durability::Synced),
            ),
        };
        print(&Line::Try {
            kind,
            key: key.clone(),
            sequence: next,
        });
        let revision = store
            .write(op)
            .await
            .expect("nobody else writes this key")
            .revision;
        print(&Line::Ack {
            kind,
            key,
            sequence: next,
            revision,
        });
    }
}
