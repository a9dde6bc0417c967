//! What must go because nothing needs it any more.
//!
//! ```text
//!   an object seen or gone ─▶ graph ─▶ verify an owner · delete · drop references · release a finalizer
//! ```
//!
//! Nothing here deletes anything: it says what should be deleted, and why that is safe.

pub mod graph;
pub mod item;

pub use graph::Graph;
pub use item::{Item, KindId, OwnerRef};
