//! A whole cluster in one process through what clusters go through: crashes, races, many ends at once, and a
//! restart. Afterwards nothing has leaked, nothing is stuck, and nothing is gone that had a living owner.

mod crashes;
mod fixture;
mod missed_heartbeats;
mod namespace_deletion;
mod races;
mod restarts;
