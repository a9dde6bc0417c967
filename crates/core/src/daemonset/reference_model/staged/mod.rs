//! Staged rollouts (`docs/spec/rollouts.md`) in random histories.
//!
//! ```text
//!   law: the rules as functions of whole objects, written a second time
//!   seen: what the controller has seen; rollouts: the real planner in a cluster in memory
//!   checks, transitions: what must hold for each request
//!   kills, random: the histories
//! ```

mod checks;
mod kills;
mod law;
mod random;
mod rollouts;
mod seen;
mod transitions;
