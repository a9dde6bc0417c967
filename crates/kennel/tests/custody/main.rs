//! What a server keeps about those who change things, and how it keeps secrets: the audit log and
//! encryption at rest, against the real binary and the bytes it leaves on the disk.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends where something is not as it must be"
)]

mod audit;
mod common;
mod encryption;
