//! Every bound of the network side, with its reason.

use std::time::Duration;

/// The largest body taken: upstream's limit, and twice what any object in scope needs.
pub const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;
/// How much of a body beyond that is read and thrown away, so that a client still busy sending gets to
/// read the refusal and can keep its connection. Whoever sends more is hung up on.
pub const REFUSED_BYTES_MAX: usize = 4 * BODY_BYTES_MAX;
/// The largest set of headers: well above any client's, far below what would hurt.
pub const HEADER_BYTES_MAX: u32 = 64 * 1024;
/// Headers of one request: real clients send a dozen.
pub const HEADERS_MAX: usize = 100;

/// Connections at one time. Each agent holds one or two; beyond this, new ones wait in the kernel.
pub const CONNECTIONS_MAX: usize = 20_000;
/// Connections from one address (of IPv6: one /64): a rack behind one router, but not all there are.
pub const CONNECTIONS_PER_ADDRESS: u32 = 2_000;
/// Connections from this machine itself: whoever is here could do worse. Still not all there are.
pub const CONNECTIONS_FROM_HERE: u32 = 18_000;
/// Handshakes under way at one time: signing is what costs the most before a client is known.
pub const HANDSHAKES: u32 = 200;
/// Handshakes under way from one address: those who never finish theirs keep others out for
/// [`Patience::handshake`], so it takes several addresses to fill the house.
pub const HANDSHAKES_PER_ADDRESS: u32 = 50;
/// Handshakes under way from this machine.
pub const HANDSHAKES_FROM_HERE: u32 = 150;

/// Requests that read, in flight at one time: upstream's number.
pub const READING_SEATS: u32 = 400;
/// Requests that write, in flight at one time: upstream's number, and many times what fills a commit.
pub const MUTATING_SEATS: u32 = 200;
/// One user's share of the seats is this part of them …
pub const USER_SHARE: (u32, u32) = (1, 4);
/// … and an administrator's this: bulk work by hand may use most of the server, never all of it.
pub const MASTER_SHARE: (u32, u32) = (3, 4);
/// Seats for controllers, of each sort, that nobody else can take: a cluster that cannot be controlled
/// does not recover from what overloads it.
pub const CONTROLLER_SEATS: u32 = 200;
/// One controller's part of these.
pub const CONTROLLER_SHARE: (u32, u32) = (1, 2);
/// Seats for the nodes' signs of life that nobody else can take: a node that is not heard of is taken for
/// dead, and its pods with it.
pub const HEARTBEAT_SEATS: u32 = 100;
/// One node's part of these: it renews one lease and writes one status at a time.
pub const HEARTBEAT_SHARE: (u32, u32) = (1, 10);

/// A seat is good for a body, or a list, of this size; larger ones take more seats, so that seats bound
/// memory as well.
pub const SEAT_BYTES: u64 = 256 * 1024;
/// The most seats one request takes.
pub const WIDTH_MAX: u32 = 12;

/// Requests of one user that wait for seats: upstream's number. Beyond it they are refused at once.
pub const QUEUE_PER_USER: usize = 50;
/// Requests of one client in this process that wait; they bound themselves.
pub const QUEUE_INSIDE: usize = 10_000;
/// Requests that wait for seats of one sort, all users together. Waiting takes a task, not a body.
pub const QUEUE_MAX: usize = 20_000;
/// How long a request waits for a seat: about what a person waits before trying again.
pub const QUEUE_WAIT: Duration = Duration::from_secs(5);
/// How long clients in this process wait: they have nobody to complain to.
pub const QUEUE_WAIT_INSIDE: Duration = Duration::from_secs(30);
/// When a refused client should try again, in seconds; upstream's number.
pub const RETRY_AFTER_SECONDS: u32 = 1;

/// Watches at one time: ten for each of ten thousand nodes.
pub const WATCHES_MAX: u32 = 100_000;
/// Watches of one user: an agent watches each config map and secret that its pods name.
pub const WATCHES_PER_USER: u32 = 2_000;
/// Watches of an administrator, a controller or a client in this process.
pub const WATCHES_PRIVILEGED: u32 = 50_000;

/// Logs, shells and tunnels under way at one time: each is a connection to an agent as well.
pub const SESSIONS_MAX: u32 = 5_000;
/// Those of one user: a log collector that follows every pod of a large node.
pub const SESSIONS_PER_USER: u32 = 500;
/// Those of an administrator, a controller or a client in this process.
pub const SESSIONS_PRIVILEGED: u32 = 4_000;
/// How long an agent may take to be reached, handshake included.
pub const DIAL: Duration = Duration::from_secs(10);
/// How long an agent may take to begin its answer: a shell in a busy runtime takes a while.
pub const AGENT_HEADERS: Duration = Duration::from_mins(1);
/// What an agent gets to say its last when a client has hung up.
pub const LAST_WORDS: Duration = Duration::from_secs(10);
/// How much of an agent's refusal is read: upstream's number.
pub const REFUSAL_BYTES_MAX: usize = 50_000;
/// A silent connection is asked by the kernel whether its other end still exists after this …
pub const KEEP_ALIVE_AFTER: Duration = Duration::from_secs(30);
/// … and every so often …
pub const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(10);
/// … and given up after so many questions without an answer.
pub const KEEP_ALIVE_TRIES: u32 = 3;

/// Streams on one HTTP/2 connection: a controller manager holds some 65 watches on one; a load
/// generator or an agent of many nodes more.
pub const STREAMS_MAX: u32 = 1000;
/// Streams that a client opened and cancelled before the server came to look at them: real clients
/// cancel a few, a flood of them ("rapid reset") ends the connection.
pub const STREAMS_CANCELLED_MAX: usize = 50;
/// Streams that the server had to reset because of what the client did on them; then it hangs up.
pub const STREAMS_RESET_MAX: usize = 200;
/// How much of one body may be under way before the server has asked for it.
pub const STREAM_WINDOW_BYTES: u32 = 256 * 1024;
/// The same for all bodies on a connection: what a connection whose requests wait can take up.
pub const CONNECTION_WINDOW_BYTES: u32 = 1024 * 1024;
/// How much of one answer is kept ready for a client that reads slowly.
pub const SEND_BUFFER_BYTES: usize = 128 * 1024;
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
    /// A request whose headers are not there by then is given up; so is, on HTTP/1.1, a connection on
    /// which no further request begins.
    pub headers: Duration,
    /// A body that is not there by then is given up.
    pub body: Duration,
    /// A client that has read nothing of what waits for it for this long has lost interest.
    pub stall: Duration,
    /// An HTTP/2 connection without a request for this long is closed. Longer than the minute and a
    /// half after which Go's clients close theirs, so that it is rarely the server that does.
    pub idle: Duration,
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
            idle: Duration::from_mins(3),
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
            idle: usual.idle.min(longest),
            shutdown: usual.shutdown.min(longest),
        }
    }
}
