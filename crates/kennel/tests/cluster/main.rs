//! A whole cluster in one process through what clusters go through: crashes, races, many ends at once, and a
//! restart. Afterwards nothing has leaked, nothing is stuck, and nothing is gone that had a living owner.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends where something is not as it must be"
)]

mod crashes;
mod ends;
mod races;
mod restarts;
mod silence;
mod world;
