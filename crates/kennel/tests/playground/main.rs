//! Playgrounds as people use them: what there is, and that nothing is left of it.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends where something is not as it must be"
)]

mod ends;
mod ground;
mod nodes;
