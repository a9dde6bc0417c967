//! `kennel rollout` against staged rollouts on simulated nodes. Every phase and message is tested in
//! `kennel_core::rollout`.

mod assist;
mod budget;
mod checks;
mod command_line;
mod commands;
mod down_nodes;
mod failures;
pub(crate) mod fixture;
mod hand_over;
mod page;
pub(crate) mod report;
mod stages;
mod watch;
