//! The part of SPDY/3.1 that Kubernetes uses: many byte streams over one connection.
//!
//! ```text
//!   Connection ── open, accept ──▶ Stream (reads and writes)
//!       │                            │  ▲
//!   pump: reads frames ──────────────┼──┘ a short queue per stream
//!         writes frames ◀────────────┘    one bounded queue
//! ```
//!
//! The peer is always moby/spdystream (kubectl, containerd), which implements no flow control: it never sends window
//! updates. So TCP alone holds back what we send, and we send no window updates either: if containerd closed the
//! connection with unread updates, we would lose its last output. As in spdystream, a stream that nobody reads blocks
//! the other streams of its connection; memory stays bounded.

pub mod client;
mod connection;
mod dictionary;
mod error;
mod frame;
#[doc(hidden)]
pub mod fuzz;
mod headers;
mod pump;
mod stream;

pub use self::connection::{Connection, Role};
pub use self::error::SpdyError;
pub use self::headers::Headers;
pub use self::stream::Stream;

/// The value of the `Upgrade` header.
pub const PROTOCOL: &str = "SPDY/3.1";

#[cfg(test)]
mod tests;
