//! Bytes under ordered keys with one global revision: compare-and-set, ranges, history, watches.
//!
//! ```text
//!  callers ──write──▶ queue ──▶ writer thread ──one transaction──▶ SQLite (WAL, synced)
//!                                     │ after the sync
//!                                     ▼
//!  callers ◀──get, range──── memory: index · event ring · watchers ──▶ watches
//! ```
//!
//! All reads are answered from [`memory`]; every write goes through one writer, which commits a whole
//! batch with one sync, makes it visible and only then answers. The crate must never learn what a
//! key or a value means: the parsed head kept beside each value is the caller's type.

mod api;
mod error;
pub mod memory;
mod record;
mod seal;
mod sqlite;

pub use api::Store;
pub use error::{Compacted, OpenError, RangeAtError, WatchEnd, WriteError};
pub use memory::Watch;
pub use record::{Durability, Event, Op, Page, Record, Revision, Written};
pub use seal::{Opened, Seal};
pub use sqlite::{DATABASE_FILE, LOCK_FILE, Options, SqliteStore, Stats};
