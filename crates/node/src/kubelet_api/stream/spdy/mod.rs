//! SPDY/3.1, as much of it as Kubernetes speaks: many streams of bytes over one connection.
//!
//! ```text
//!   Connection ── open, accept ──▶ Stream (reads and writes)
//!       │                            │  ▲
//!   pump: reads frames ──────────────┼──┘ a short queue per stream
//!         writes frames ◀────────────┘    one queue, bounded in bytes
//! ```
//!
//! The other side is always moby/spdystream (kubectl, containerd), which keeps no windows: it never says that it
//! has room for more. So what we send is held back by TCP alone, and neither do we say so: what containerd has
//! not read when it hangs up would cost us what it wrote last. A stream that nobody reads holds up the others of
//! its connection, as there: memory stays bounded.

pub mod client;
mod connection;
mod dictionary;
mod error;
mod frame;
mod headers;
mod pump;
mod stream;

pub use self::connection::{Connection, Role};
pub use self::error::SpdyError;
pub use self::headers::Headers;
pub use self::stream::Stream;

/// The name by which it is asked for in `Upgrade:`.
pub const PROTOCOL: &str = "SPDY/3.1";

#[cfg(test)]
mod tests;
