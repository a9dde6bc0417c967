//! What a server keeps about those who change things, and how it keeps secrets: the audit log and
//! encryption at rest, against the real binary and the bytes it leaves on the disk.

mod audit;
mod encryption;
mod fixture;
