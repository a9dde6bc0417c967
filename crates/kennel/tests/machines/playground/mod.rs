//! `kennel playground`: its nodes, and its cleanup.

mod cleanup;
pub(crate) mod fixture;
mod nodes;
