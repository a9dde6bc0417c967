//! Tests of the spec's rules against the planner: events in, requested writes out.

mod claim;
mod handlers;
mod harness;
mod manage;
mod revision_history;
mod rolling_update;
mod staged;
mod status;
mod surge;
mod waiting;
mod write_results;

use super::super::fixtures::{daemon_set, node, pod};

/// No writes are requested.
const NOTHING: [&str; 0] = [];
