//! What must go because nothing needs it any more.
//!
//! ```text
//!   an object seen or gone ─▶ graph ─▶ verify an owner · delete · drop owners · release a finalizer
//!   a pod or node seen or gone ─▶ pods ─▶ ask for a node · delete a pod
//!   what is left in a namespace ─▶ namespace ─▶ its conditions, and whether it may go
//! ```
//!
//! Nothing here deletes anything: it says what should be deleted, and why that is safe.

pub mod graph;
pub mod item;
pub mod namespace;
pub mod pods;

pub use graph::Graph;
pub use item::{Item, KindId, OwnerRef};
