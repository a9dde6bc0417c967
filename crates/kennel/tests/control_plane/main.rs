//! The control plane in the real binary or in the test's own process, with simulated nodes: what kubectl, kube-rs and
//! operators see, and what faults do to it. Needs no root.

#![expect(
    clippy::unwrap_used,
    reason = "a failed unwrap fails the test that called it"
)]

mod apply_examples;
mod apply_walk;
mod audit_and_encryption;
mod bad_manifests;
mod bench;
mod bench_connections;
mod bootstrap;
mod clients;
mod cluster_faults;
mod container_failures;
mod daemonset_controller;
mod dashboard;
mod dashboard_page;
mod dns;
mod explain;
mod garbage_collection;
mod histories;
mod identities;
mod kube_rs;
mod kube_rs_restart;
mod kubeconfig_certificates;
mod node_ipam;
mod node_lifecycle;
mod required_daemons;
mod reset;
mod rollout;
mod server_faults;
mod server_lifecycle;
mod sessions;
mod simulation;
mod starting;
mod storage;
mod unauthorized_clients;
mod why;
