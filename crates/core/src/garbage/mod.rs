//! Garbage collection: of objects without owners, of pods, and of namespaces.
//!
//! ```text
//!   object events ─▶ graph ─▶ look up an owner · delete · remove owners · remove a finalizer
//!   pod and node events ─▶ pods ─▶ look up a node · delete a pod
//!   remaining objects of a namespace ─▶ namespace ─▶ its conditions, and whether it may be removed
//! ```
//!
//! These modules only decide; `kennel-control` carries the decisions out.

pub mod graph;
pub mod item;
pub mod namespace;
pub mod pods;

pub use graph::Graph;
pub use item::{Item, KindId, OwnerRef};
