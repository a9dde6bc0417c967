//! The audit log and encryption at rest, against the real binary and the bytes that it leaves on the disk.

mod audit;
mod encryption;
mod fixture;
