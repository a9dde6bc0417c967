//! What every client of the API shares: watching, writing, time, work in flight. It decides nothing,
//! and it knows no server: any Kubernetes API will do.
//!
//! ```text
//!   API ──watch──▶ feed ─▶ informer ─▶ (a controller, an agent) ─▶ work ─▶ write ──▶ API
//!                                                   └─▶ events ──────────▲
//!   lease ─▶ fence ─▶ may it write?        pace: how much at once?       metrics
//! ```

pub mod api;
pub mod backoff;
pub mod clock;
pub mod events;
pub mod feed;
pub mod fence;
pub mod informer;
pub mod lean;
pub mod lease;
pub mod metrics;
pub mod pace;
pub mod work;
pub mod write;

/// Why a client ended before it was told to stop.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A watch that never ends has ended.
    #[error("the watch of {0} ended")]
    WatchEnded(&'static str),
}
