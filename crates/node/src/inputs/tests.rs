//! Tests against an API server in the same process.

mod containers;
pub(super) mod fixture;
mod volumes;
