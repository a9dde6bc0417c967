//! Staged rollouts (`docs/spec/rollouts.md`) in random histories.
//!
//! ```text
//!   inputs: the rules as functions of whole objects, written a second time
//!   model, judging, stepping, deciding, remaking: the reference model's part about staged rollouts
//!   observed: what the controller has observed; rollouts: the real planner in a cluster in memory
//!   checks, transitions: what must hold for each request
//!   kills, random, examples: the histories
//! ```

mod checks;
mod deciding;
mod examples;
mod inputs;
mod judging;
mod kills;
mod model;
mod observed;
mod random;
mod remaking;
mod rollouts;
mod stepping;
mod transitions;

pub(super) use judging::signed;
pub(super) use model::{Rollout, check_text, record_text};
