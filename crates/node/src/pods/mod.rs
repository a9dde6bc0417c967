//! The pods of this node: where they come from, who looks after each, what is told about them.
//!
//! ```text
//!   API watch ─┐                ┌▶ worker (one per pod) ─▶ inputs, probes, runtime
//!   files ─────┴▶ source ─▶ keeper                │
//!                                 directory ◀─────┴─▶ report ─▶ API
//! ```

pub mod directory;
pub mod pod;

pub use directory::{Directory, View};
pub use pod::{Origin, Pod};
