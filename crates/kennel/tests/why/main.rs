//! `kennel why` as people and scripts use it, against clusters where things go wrong for real. The
//! situations that take long or are hard to bring about are tests of `kennel_core::why`.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends where something is not as it must be"
)]

mod asking;
mod placing;
mod real;
mod running;
mod world;
