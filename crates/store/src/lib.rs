//! A key-value store with ordered keys and one global revision: compare-and-set writes, ranges, history, watches.
//!
//! ```text
//!  callers ──write──▶ queue ──▶ writer thread ──one transaction──▶ SQLite (WAL, synced)
//!                                     │ after the sync
//!                                     ▼
//!  callers ◀──get, range──── memory: index · event ring · watchers ──▶ watches
//! ```
//!
//! Reads are served from [`memory`]. Every write to SQLite goes through one writer thread, which commits a whole batch with
//! one sync, makes it visible and only then answers. The other engine is an etcd cluster, whose watch feeds memory. The crate does not interpret keys and values: the parsed head
//! kept beside each value is the caller's type.

mod api;
mod damaged;
mod error;
mod etcd;
mod health;
pub mod memory;
mod record;
mod seal;
mod sqlite;
mod stats;

pub use api::Store;
pub use damaged::DamagedValue;
pub use error::{
    Compacted, Damage, DecodeError, OpenError, RangeAtError, Unconfirmed, WatchEnd, WriteError,
};
pub use etcd::migrate;
pub use etcd::{
    Endpoints, EndpointsError, EtcdError, EtcdOptions, EtcdStore, EtcdTls, EtcdUser, Holder,
};
pub use health::WriterHealth;
pub use memory::{Limits, Watch};
pub use record::{Durability, Event, History, Op, Page, Record, Revision, Written};
pub use seal::{Opened, Seal, SealError};
pub use sqlite::{
    DATABASE_FILE, Directory, LOCK_FILE, LogDamage, Offline, Options, RawValue, SCHEMA_VERSION,
    SqliteStore, ValueReport,
};
pub use stats::Stats;
