//! The store's tests against its public interface, in one binary so that they link once.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "test helpers are test code"
)]

mod basics;
mod child;
mod common;
mod concurrency;
mod crash;
mod damaged;
mod etcd;
mod etcd_cluster;
mod etcd_faults;
mod etcd_lag;
mod etcd_restores;
mod etcd_tls;
mod full;
mod health;
mod migrate;
mod model;
mod refusals;
mod sealed;
mod sync;
mod upgrades;
