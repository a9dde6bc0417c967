//! The rules of the spec, at the planner: what is told, and what is asked for.

mod claim;
mod desk;
mod ends;
mod manage;
mod past;
mod roll;
mod status;
mod surge;
mod wiring;

use super::super::fixtures::{daemon_set, node, pod};

/// Nothing is asked for.
const NOTHING: [&str; 0] = [];
