//! What every client of a Kubernetes API shares: watches, writes, retries, events, leader election. It contains no rules
//! and works with any Kubernetes API.
//!
//! ```text
//!   API ──watch──▶ feed ─▶ informer ─▶ (a controller, an agent) ─▶ work ─▶ write ──▶ API
//!                                                   └─▶ events ──────────▲
//!   lease ─▶ fence: may this process write?   pace: how many writes at once?
//!   fetch: one request to a server that is no Kubernetes API
//!   connection: clients of servers in other processes, whose errors say what to check
//!   single_connection: the same, with all requests and watches on one HTTP/2 connection
//!   expiry: warnings of certificates that end soon
//!   clock, backoff, rate, metrics, pulse: used by all of them
//! ```

pub mod api;
pub mod backoff;
pub mod clock;
pub mod connection;
pub mod events;
pub mod expiry;
pub mod feed;
pub mod fence;
pub mod fetch;
mod headers;
pub mod informer;
pub mod lease;
pub mod metrics;
pub mod pace;
pub mod pulse;
pub mod rate;
pub mod single_connection;
pub mod work;
pub mod write;

pub use headers::headers;

/// Why a client ended before it was stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Watches retry for ever, so this one's informer was dropped.
    #[error("the watch of {0} ended")]
    WatchEnded(&'static str),
}
