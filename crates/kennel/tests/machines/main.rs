//! Real nodes: machines with networks of their own, containerd and the process runtime, packages, the playground,
//! and the guides whose commands are run. Needs root; see `kennel_testkit::machine`.

#![expect(
    clippy::unwrap_used,
    reason = "a failed unwrap fails the test that called it"
)]

mod agent_join;
mod agents;
mod examples;
mod guides;
mod loopback_server;
mod packages;
mod playground;
mod pod_network;
mod process_runtime;
mod readme_manifest;
mod reset;
mod services;
mod static_pods;
mod tour;
