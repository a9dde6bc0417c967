//! How values look on disk, where that is not as they are. The store knows only that there is a way to
//! seal a value and to open it again; memory, callers and watchers see values as they were written.

use std::fmt::Debug;

use bytes::Bytes;

/// A way to store values so that the file alone does not tell them.
pub trait Seal: Debug + Send + Sync + 'static {
    /// What tells this way of sealing from others, such as the name of a key; empty when values are stored
    /// as they are. When it differs from what the file was last written with, everything in the file is
    /// rewritten at open, and no trace of what was there before is left in it.
    fn name(&self) -> &str;

    /// The bytes to store for a key's value; `None` to store the value as it is.
    fn seal(&self, key: &str, value: &[u8]) -> Option<Vec<u8>>;

    /// The value in the bytes stored for a key, or why there is none to be had.
    fn open(&self, key: &str, stored: Bytes) -> Result<Opened, String>;
}

/// A value that was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The value.
    pub value: Bytes,
    /// Whether [`Seal::seal`] would store it in this way; what it would not is rewritten at open.
    pub is_current: bool,
}
