//! Every bound of the network side, with its reason.

use std::time::Duration;

/// The largest body taken: upstream's limit, and twice what any object in scope needs.
pub const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;
/// Connections at one time. Each agent holds one or two; beyond this, new ones wait in the kernel.
pub const CONNECTIONS_MAX: usize = 20_000;
/// A client that has not finished its handshake by then is not one.
pub const HANDSHAKE: Duration = Duration::from_secs(10);
/// A request whose headers are not there by then is given up.
pub const HEADERS: Duration = Duration::from_secs(30);
/// A body that is not there by then is given up.
pub const BODY: Duration = Duration::from_secs(60);
/// The largest set of headers: well above any client's, far below what would hurt.
pub const HEADER_BYTES_MAX: u32 = 64 * 1024;
/// Streams on one HTTP/2 connection: a controller manager holds some 65 watches on one; a load
/// generator or an agent of many nodes more.
pub const STREAMS_MAX: u32 = 1000;
/// HTTP/2 connections are asked for a sign of life this often …
pub const PING_EVERY: Duration = Duration::from_secs(30);
/// … and closed when none comes within this.
pub const PING_WAIT: Duration = Duration::from_secs(20);
/// What connections get to finish at shutdown.
pub const SHUTDOWN: Duration = Duration::from_secs(10);
