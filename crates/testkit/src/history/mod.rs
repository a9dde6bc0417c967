//! Recorded histories of concurrent clients, and a checker of them that shares no code with the server.
//!
//! [`check`] decides whether one object at a time explains all answers (linearizability, by search), whether revisions
//! follow real time, whether lists are snapshots, and whether watches are ordered, complete and true. It knows
//! what a write was told, not how a server works; `crates/kennel/tests/control_plane/histories` records.

mod changes;
mod lists;
mod object;
mod resolve;
mod revisions;
mod search;
#[cfg(test)]
mod tests;
mod watches;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A resourceVersion.
pub type Revision = u64;
/// What a write puts into an object: no two writes of a history share one.
pub type Token = u64;
/// Nanoseconds since the history began.
pub type Instant = u64;

/// The end of an operation that may take effect at any time.
pub const NEVER: Instant = Instant::MAX;

/// What an object holds. Creates and updates set both, patches the second alone, so that a patch shows what it was merged into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Content {
    /// The create or update that this goes back to.
    pub base: Token,
    /// The last write.
    pub last: Token,
}

/// An object as an answer showed it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Seen {
    pub uid: Arc<str>,
    pub revision: Revision,
    pub content: Content,
}

/// What a client asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    Create {
        token: Token,
    },
    /// Replaces the object if it is this one at this revision.
    Update {
        token: Token,
        uid: Arc<str>,
        revision: Revision,
    },
    /// Merges, at this revision if one is given.
    Patch {
        token: Token,
        revision: Option<Revision>,
    },
    /// Deletes, with these preconditions.
    Delete {
        uid: Option<Arc<str>>,
        revision: Option<Revision>,
    },
    Get,
}

impl Call {
    /// What it writes, unless it is a read or a delete.
    fn token(&self) -> Option<Token> {
        match self {
            Self::Create { token } | Self::Update { token, .. } | Self::Patch { token, .. } => {
                Some(*token)
            }
            Self::Delete { .. } | Self::Get => None,
        }
    }
}

/// What it was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The object, as it was read or written.
    Shown(Seen),
    /// It was deleted.
    Deleted,
    NotFound,
    Exists,
    Conflict,
    /// No answer, or one that says that it is not known: it took effect before `returned`, or never.
    Unknown,
}

/// One call of one client about one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    pub client: usize,
    pub key: String,
    pub call: Call,
    pub answer: Answer,
    pub invoked: Instant,
    pub returned: Instant,
}

/// A list of all objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List {
    pub client: usize,
    pub invoked: Instant,
    pub returned: Instant,
    pub revision: Revision,
    pub objects: BTreeMap<String, Seen>,
}

/// The type of a watch event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Added,
    Modified,
    Deleted,
}

/// What a watcher did or received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// It read the state: with a list, or as the initial events of a watch.
    Listed(List),
    /// It asked for the events after this revision.
    Connected {
        after: Revision,
    },
    /// The object's revision is that of the event.
    Event {
        kind: Kind,
        key: String,
        seen: Seen,
        at: Instant,
    },
    Bookmark {
        revision: Revision,
        at: Instant,
    },
}

/// All that one watcher saw, over all its connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stream {
    pub watcher: usize,
    /// The object that it watches; all objects if there is none.
    pub only: Option<String>,
    pub steps: Vec<Step>,
}

/// Everything that clients saw.
#[derive(Clone, Debug, Default)]
pub struct History {
    pub operations: Vec<Operation>,
    pub lists: Vec<List>,
    pub streams: Vec<Stream>,
}

impl History {
    /// The lists of clients, and those that watchers of all objects began with.
    fn all_lists(&self) -> impl Iterator<Item = &List> {
        let whole = self.streams.iter().filter(|stream| stream.only.is_none());
        let steps = whole.flat_map(|stream| &stream.steps);
        let began = steps.filter_map(|step| match step {
            Step::Listed(list) => Some(list),
            _ => None,
        });
        self.lists.iter().chain(began)
    }
}

/// What a history violates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// An object that nobody wrote, or one write with two results.
    Content,
    /// A revision that was assigned twice, or that does not follow real time.
    Revision,
    /// No order of the operations on one object explains their answers.
    Linearizability,
    /// The search was given up.
    Undecided,
    /// A list that is no snapshot at its revision.
    List,
    /// An event or bookmark at or before an earlier one.
    WatchOrder,
    /// An event that is missing before a later one.
    WatchGap,
    /// An event whose type or object does not fit the state before it.
    WatchType,
    /// A bookmark before an event that it covers.
    Bookmark,
}

/// A violation and what shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub rule: Rule,
    pub detail: String,
}

impl Violation {
    fn new(rule: Rule, detail: String) -> Self {
        Self { rule, detail }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.rule, self.detail)
    }
}

/// How much was checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    pub operations: usize,
    /// Writes without an answer.
    pub unknown: usize,
    /// Those of them that somebody saw.
    pub unknown_seen: usize,
    /// Configurations that the search visited.
    pub visited: usize,
    pub lists: usize,
    /// Objects missing from lists whose deletion no watcher could have seen.
    pub unjudged: usize,
    pub events: usize,
    pub bookmarks: usize,
    pub connections: usize,
}

impl Figures {
    /// Adds those of another history.
    pub fn add(&mut self, other: &Self) {
        self.operations += other.operations;
        self.unknown += other.unknown;
        self.unknown_seen += other.unknown_seen;
        self.visited += other.visited;
        self.lists += other.lists;
        self.unjudged += other.unjudged;
        self.events += other.events;
        self.bookmarks += other.bookmarks;
        self.connections += other.connections;
    }
}

/// Checks a history; returns how much that was, or all that is wrong.
pub fn check(history: &History) -> Result<Figures, Vec<Violation>> {
    let mut violations = Vec::new();
    let mut figures = Figures {
        operations: history.operations.len(),
        ..Figures::default()
    };
    let operations = resolve::resolve(history, &mut figures, &mut violations);
    let changes = changes::Changes::of(history, &operations, &mut violations);
    revisions::check(history, &operations, &mut violations);
    lists::check(history, &changes, &mut figures, &mut violations);
    for stream in &history.streams {
        watches::check(stream, &changes, &mut figures, &mut violations);
    }
    let by_key = search::partition(history, operations);
    for (key, operations) in by_key {
        match search::linearize(&operations) {
            Ok(visited) => figures.visited += visited,
            Err(failure) => violations.push(Violation::new(
                failure.rule,
                format!("{key}: {}", failure.detail),
            )),
        }
    }
    if violations.is_empty() {
        Ok(figures)
    } else {
        Err(violations)
    }
}
