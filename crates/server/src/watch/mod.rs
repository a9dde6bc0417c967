//! Watches: one [`hub::Hub`] per stored collection hands each event to the watchers it concerns,
//! and [`stream`] turns what a watcher gets into lines.
//!
//! Watchers are indexed by what they ask for (a name, a field such as `spec.nodeName`, a label, a
//! namespace), so that an event costs what its own watchers cost, not what all of them would.

pub mod event;
pub mod filter;
pub mod hub;
pub mod stream;

pub use event::{Change, Shared};
pub use filter::Filter;
pub use hub::{Hub, Hubs};
