//! Watches: one [`hub::Hub`] per stored collection sends each event to the watchers that it matches, and
//! [`stream`] encodes the events of a watcher as lines.
//!
//! Watchers are indexed by their filter (a name, a field such as `spec.nodeName`, a label, a namespace), so
//! that the cost of an event depends on the watchers that it matches, not on all of them. [`queue`] leaves out states of large
//! objects that newer ones have replaced before they were sent.

pub mod event;
pub mod filter;
pub mod hub;
mod queue;
pub mod stream;

pub use event::{Change, Shared};
pub use filter::Filter;
pub use hub::{Hub, Hubs};
