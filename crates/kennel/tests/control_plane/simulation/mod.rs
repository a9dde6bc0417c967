//! Simulated nodes: what scenarios do to pods and nodes, in the test's own process under a paused clock;
//! the pods of one node that is looked after by the agent itself;
//! and `kennel agent` as a process beside a cluster.

mod agent;
mod fixture;
mod node_scenarios;
mod pod_scenarios;
pub(crate) mod processes;
