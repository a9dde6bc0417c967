//! The version that servers, nodes and commands report.

/// The Kubernetes version whose behaviour Kennel has, with Kennel's own as build metadata. Clients parse it as a
/// semantic version.
pub const GIT_VERSION: &str = concat!("v1.36.4+kennel", env!("CARGO_PKG_VERSION"));
