//! What somebody gets who has no business here: over real sockets, against the real binary. Every
//! attempt is refused with the right code, and no refusal tells more than another.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends where something is not as it must be"
)]

mod certificates;
mod common;
mod credentials;
mod http;
