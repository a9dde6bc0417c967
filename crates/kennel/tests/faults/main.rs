//! What a server does when its clients, its disk or its end are not as they should be: over real
//! sockets, against the real binary. Every refusal is a proper Status, nothing that was acknowledged is
//! lost, and afterwards all goes on as before.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends where something is not as it must be"
)]

mod clients;
mod common;
mod disk;
mod ends;
mod flood;
mod input;
mod starts;
mod traces;
