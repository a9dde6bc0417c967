//! The rules of the spec, at the planner: what is told, and what is asked for.

mod desk;
mod manage;

use super::super::fixtures::{daemon_set, node, pod};
