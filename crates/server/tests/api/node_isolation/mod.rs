//! Isolation of nodes: each accesses its own objects and those that its pods reference.

mod fixture;
mod needs;
mod restrictions;
mod walk;
