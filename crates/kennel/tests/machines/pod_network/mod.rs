//! The pod network with real packets: machines on one link and on two with a router between them, containerd, and the agent's own
//! routes, VXLAN devices and rules.

mod doctor;
mod faults;
mod fixture;
mod nodes;
mod paths;
mod policies;
mod refusals;
mod rolling;
mod services;
mod three_machines;
mod traffic;
