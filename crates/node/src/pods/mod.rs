//! The pods of this node: where they come from, who looks after each, what is told about them.
//!
//! ```text
//!   API watch ─┐                ┌▶ worker (one per pod) ─▶ inputs, probes, runtime
//!   files ─────┴▶ source ─▶ keeper                │
//!                                 directory ◀─────┴─▶ report ─▶ API
//! ```

pub mod directory;
pub mod keeper;
mod logs;
pub mod needs;
pub mod pod;
mod report;
pub mod source;
#[cfg(test)]
mod tests;
mod voice;
mod worker;

pub use directory::{Directory, View};
pub use keeper::{Order, Orders, Parts};
pub use needs::{Probes, Question, Supplies, Unwell};
pub use pod::{Origin, Pod};
pub use source::Change;
