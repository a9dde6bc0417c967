//! Every bound of the network side, with its reason.

use std::time::Duration;

/// The largest body taken: upstream's limit, and twice what any object in scope needs.
pub const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;
/// How much of a body beyond that is read and thrown away, so that a client still busy sending gets to
/// read the refusal and can keep its connection. Whoever sends more is hung up on.
pub const REFUSED_BYTES_MAX: usize = 4 * BODY_BYTES_MAX;
/// Connections at one time. Each agent holds one or two; beyond this, new ones wait in the kernel.
pub const CONNECTIONS_MAX: usize = 20_000;
/// The largest set of headers: well above any client's, far below what would hurt.
pub const HEADER_BYTES_MAX: u32 = 64 * 1024;
/// Streams on one HTTP/2 connection: a controller manager holds some 65 watches on one; a load
/// generator or an agent of many nodes more.
pub const STREAMS_MAX: u32 = 1000;
/// HTTP/2 connections are asked for a sign of life this often …
pub const PING_EVERY: Duration = Duration::from_secs(30);
/// … and closed when none comes within this.
pub const PING_WAIT: Duration = Duration::from_secs(20);

/// How long a client that has been sent its last answer may take to hang up as well: long enough to read
/// the answer across a slow network, short enough not to collect dead connections.
pub const LINGER: Duration = Duration::from_secs(1);

/// How long clients are waited for.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// A client that has not finished its handshake by then is not one.
    pub handshake: Duration,
    /// A request whose headers are not there by then is given up.
    pub headers: Duration,
    /// A body that is not there by then is given up.
    pub body: Duration,
    /// A client that has read nothing of what waits for it for this long has lost interest.
    pub stall: Duration,
    /// What connections get to finish at shutdown.
    pub shutdown: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(10),
            headers: Duration::from_secs(30),
            body: Duration::from_mins(1),
            stall: Duration::from_mins(1),
            shutdown: Duration::from_secs(10),
        }
    }
}

impl Patience {
    /// The usual patience, but nowhere longer than this.
    #[must_use]
    pub fn at_most(longest: Duration) -> Self {
        let usual = Self::default();
        Self {
            handshake: usual.handshake.min(longest),
            headers: usual.headers.min(longest),
            body: usual.body.min(longest),
            stall: usual.stall.min(longest),
            shutdown: usual.shutdown.min(longest),
        }
    }
}
