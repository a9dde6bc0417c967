//! Values that a store found unreadable and set aside.

/// A value that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedValue {
    pub key: String,
    /// The revision that created the key: identifies the value, as a key may have several damaged ones.
    pub created: i64,
    /// What is wrong with it.
    pub reason: String,
}
