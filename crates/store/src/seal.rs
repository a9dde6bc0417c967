//! Encryption at rest, as an interface: the engine seals values before it writes them to disk and opens them when
//! it loads them. Memory, callers and watches only see opened values.

use std::fmt::Debug;

use bytes::Bytes;

pub trait Seal: Debug + Send + Sync + 'static {
    /// Identifies the seal, such as the name of a key; empty when values are stored as they are. When it
    /// differs from the one that the file was last written with, the whole file is rewritten at open, without
    /// leaving old bytes in it.
    fn name(&self) -> &str;

    /// The bytes to store for a key's value; `None` to store the value as it is.
    fn seal(&self, key: &str, value: &[u8]) -> Option<Vec<u8>>;

    /// Why the value of this key, as it was last opened, must not be replaced: it has more than [`Self::open`] could give.
    fn read_only(&self, _key: &str) -> Option<String> {
        None
    }

    /// Recovers the value from the bytes stored for a key.
    fn open(&self, key: &str, stored: Bytes) -> Result<Opened, SealError>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    pub value: Bytes,
    /// Whether [`Seal::seal`] would store it in the same form; other values are rewritten at open.
    pub is_current: bool,
}

/// Why a stored value could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// A key is missing. The value may be intact, so the store does not open.
    #[error("{0}")]
    MissingKey(Box<dyn std::error::Error + Send + Sync>),
    /// The value's bytes were changed. The store opens without it.
    #[error("{0}")]
    Damaged(Box<dyn std::error::Error + Send + Sync>),
}
