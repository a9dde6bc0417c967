//! `kennel playground`: its nodes, and its cleanup.

mod cleanup;
mod fixture;
mod nodes;
