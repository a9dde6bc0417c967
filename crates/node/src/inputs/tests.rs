//! Tests against an API server in the same process.

mod containers;
mod volumes;
