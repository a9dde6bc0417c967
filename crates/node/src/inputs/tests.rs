//! Tests against an API server in the same process.

mod cluster_services;
mod containers;
pub(super) mod fixture;
mod volumes;
