//! Real daemons on real nodes: a server, agents that have joined it, containerd or plain processes, and
//! kubectl. Each machine has a network of its own, so that host ports do not collide.

mod clocks;
mod container_environment;
mod debug;
mod exporter;
mod faults;
pub(crate) mod fleet;
mod logs_and_exec;
mod pod_lifecycle;
mod pressure;
mod pulls;
mod rotation;
mod runtime_outage;
mod static_pods;
mod usage;
