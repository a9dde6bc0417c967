//! `kennel rollout` against staged rollouts on simulated nodes. Every phase and message is tested in
//! `kennel_core::rollout`.

mod checks;
mod command_line;
mod commands;
mod failures;
mod fixture;
mod page;
mod stages;
