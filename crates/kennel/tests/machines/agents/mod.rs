//! Real daemons on real nodes: a server, agents that have joined it, containerd or plain processes, and
//! kubectl. Each machine has a network of its own, so that host ports do not collide.

mod clocks;
mod exporter;
mod faults;
mod files;
mod fleet;
mod given;
mod life;
mod looking;
mod pressure;
mod pulls;
mod rotation;
