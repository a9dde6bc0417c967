//! Simulated nodes: what scenarios do to pods and nodes, in the test's own process under a paused clock;
//! the pods of one node that is looked after by the agent itself;
//! and `kennel agent` as a process beside a cluster.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics; this also holds for its helpers"
)]

mod agent;
mod lives;
mod nodes;
mod processes;
mod world;
