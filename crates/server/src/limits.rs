//! All limits and timeouts of connections and requests, with their reasons.

use std::time::Duration;

/// The largest body taken: upstream's limit, and twice what any object in scope needs.
pub const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;
/// How much of a larger body is read and discarded, so that a client that is still sending sees the refusal
/// and can keep its connection. If a client sends more, the connection is closed.
pub const REFUSED_BYTES_MAX: usize = 4 * BODY_BYTES_MAX;
/// The largest set of headers: far more than real clients send.
pub const HEADER_BYTES_MAX: u32 = 64 * 1024;
/// Headers of one request: real clients send a dozen.
pub const HEADERS_MAX: usize = 100;

/// Open connections. Each agent holds one or two; further ones wait in the kernel's backlog.
pub const CONNECTIONS_MAX: usize = 20_000;
/// Connections from one IPv4 address or IPv6 /64: enough for a rack behind one router.
pub const CONNECTIONS_PER_ADDRESS: u32 = 2_000;
/// Connections from this machine, which is trusted more. Leaves some for other addresses.
pub const CONNECTIONS_LOCAL: u32 = 18_000;
/// Concurrent TLS handshakes: the signature is the largest cost before a client is authenticated.
pub const HANDSHAKES: u32 = 200;
/// Concurrent handshakes from one address. An unfinished handshake holds its seat for
/// [`Timeouts::handshake`], so one address must not be able to hold all of them.
pub const HANDSHAKES_PER_ADDRESS: u32 = 50;
/// Concurrent handshakes from this machine.
pub const HANDSHAKES_LOCAL: u32 = 150;

/// Seats of requests that read: upstream's number.
pub const READING_SEATS: u32 = 400;
/// Seats of requests that write: upstream's number, and many times what one commit takes.
pub const MUTATING_SEATS: u32 = 200;
/// The share of the seats that one user may hold.
pub const USER_SHARE: (u32, u32) = (1, 4);
/// The share of an administrator, whose bulk operations may use most of the server but not all of it.
pub const MASTER_SHARE: (u32, u32) = (3, 4);
/// Seats for reads and for writes that only controllers may take, since without its controllers a cluster
/// does not recover from an overload.
pub const CONTROLLER_SEATS: u32 = 200;
/// The share that one controller may hold.
pub const CONTROLLER_SHARE: (u32, u32) = (1, 2);
/// Seats that only heartbeats of nodes may take: the control plane considers a node without heartbeats dead
/// and evicts its pods.
pub const HEARTBEAT_SEATS: u32 = 100;
/// The share that one node may hold: it renews one lease and writes one status at a time.
pub const HEARTBEAT_SHARE: (u32, u32) = (1, 10);

/// The size of a body or a list that one seat covers; larger ones take more seats, so that seats limit
/// memory as well.
pub const SEAT_BYTES: u64 = 256 * 1024;
/// The most seats one request takes.
pub const WIDTH_MAX: u32 = 12;

/// Queued requests of one user: upstream's number. Further ones are rejected at once.
pub const QUEUE_PER_USER: usize = 50;
/// Queued requests of one client in this process, which limits itself.
pub const QUEUE_IN_PROCESS: usize = 10_000;
/// Queued requests of one lane. A queued request has a task, but no body in memory.
pub const QUEUE_MAX: usize = 20_000;
/// How long a request is queued: about what a person waits before trying again.
pub const QUEUE_WAIT: Duration = Duration::from_secs(5);
/// How long requests of clients in this process are queued.
pub const QUEUE_WAIT_IN_PROCESS: Duration = Duration::from_secs(30);
/// `Retry-After` of a rejected request: upstream's number.
pub const RETRY_AFTER_SECONDS: u32 = 1;

/// Open watches: ten for each of ten thousand nodes.
pub const WATCHES_MAX: u32 = 100_000;
/// Open watches of one user: an agent watches each config map and secret that its pods reference.
pub const WATCHES_PER_USER: u32 = 2_000;
/// Open watches of an administrator, a controller or a client in this process.
pub const WATCHES_PRIVILEGED: u32 = 50_000;

/// Open log, exec, attach and port-forward sessions: each is a connection to an agent as well.
pub const SESSIONS_MAX: u32 = 5_000;
/// Open sessions of one user: a log collector that follows every pod of a large node.
pub const SESSIONS_PER_USER: u32 = 500;
/// Open sessions of an administrator, a controller or a client in this process.
pub const SESSIONS_PRIVILEGED: u32 = 4_000;
/// The timeout of a connection to an agent, TLS handshake included.
pub const DIAL: Duration = Duration::from_secs(10);
/// The timeout of an agent's response headers: starting a process in a busy runtime takes a while.
pub const AGENT_HEADERS: Duration = Duration::from_mins(1);
/// How long an agent may send on after its client has closed the connection.
pub const DRAIN: Duration = Duration::from_secs(10);
/// How much of an agent's refusal is read: upstream's number.
pub const REFUSAL_BYTES_MAX: usize = 50_000;
/// Agents that are asked for the usage of their containers at the same time. Each answers in a few milliseconds, or in
/// little more than a second if nobody has asked it for a while.
pub const USAGE_REQUESTS: usize = 512;
/// The timeout of such a request, as a whole: metrics-server's.
pub const USAGE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an answer is used, and that there was none: metrics-server's interval.
pub const USAGE_KEPT: Duration = Duration::from_secs(15);
/// The largest answer: several times that of a node with the most pods.
pub const USAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Idle time before the first TCP keepalive probe.
pub const KEEP_ALIVE_AFTER: Duration = Duration::from_secs(30);
/// The interval of further keepalive probes.
pub const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(10);
/// Unanswered keepalive probes before the connection is dropped.
pub const KEEP_ALIVE_TRIES: u32 = 3;

/// Streams on one HTTP/2 connection: a controller manager holds some 65 watches on one; a load
/// generator or an agent of many nodes more.
pub const STREAMS_MAX: u32 = 1000;
/// Streams that a client may open and cancel before the server accepts them. Real clients cancel a few; a
/// flood of them ("rapid reset") closes the connection.
pub const STREAMS_CANCELLED_MAX: usize = 50;
/// Streams that the server may reset because of protocol errors before it closes the connection.
pub const STREAMS_RESET_MAX: usize = 200;
/// The flow-control window of one stream: how much of a body a client may send ahead.
pub const STREAM_WINDOW_BYTES: u32 = 256 * 1024;
/// The flow-control window of a connection: how much memory its queued requests can take.
pub const CONNECTION_WINDOW_BYTES: u32 = 1024 * 1024;
/// How much of one answer is buffered for a client that reads slowly.
pub const SEND_BUFFER_BYTES: usize = 128 * 1024;
/// The interval of HTTP/2 pings.
pub const PING_EVERY: Duration = Duration::from_secs(30);
/// How long an HTTP/2 ping may stay unanswered before the connection is closed.
pub const PING_WAIT: Duration = Duration::from_secs(20);

/// How long a connection lingers after its last answer for the client to close it: long enough to read the
/// answer across a slow network, short enough not to accumulate dead connections.
pub const LINGER: Duration = Duration::from_secs(1);

/// The timeouts of connections.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// Of the TLS handshake.
    pub handshake: Duration,
    /// Of the headers of a request; on HTTP/1.1 also of an idle connection.
    pub headers: Duration,
    /// Of the body of a request.
    pub body: Duration,
    /// Of the answer to a request that is not long-lived, from its body on: upstream's.
    pub answer: Duration,
    /// Of a client that reads nothing of an answer that is ready.
    pub stall: Duration,
    /// Of an HTTP/2 connection without a request. Longer than the 90 seconds of Go's clients, so that the
    /// client usually closes it.
    pub idle: Duration,
    /// Of the graceful shutdown.
    pub shutdown: Duration,
    /// How often the client certificate of an open watch or session is verified again, so that a revocation reaches it.
    /// At ten thousand watches, that is a thousand lookups a second.
    pub recheck: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(10),
            headers: Duration::from_secs(30),
            body: Duration::from_mins(1),
            answer: Duration::from_mins(1),
            stall: Duration::from_mins(1),
            idle: Duration::from_mins(3),
            shutdown: Duration::from_secs(10),
            recheck: Duration::from_secs(10),
        }
    }
}

impl Timeouts {
    /// The defaults, but none longer than this.
    #[must_use]
    pub fn at_most(longest: Duration) -> Self {
        let default = Self::default();
        Self {
            handshake: default.handshake.min(longest),
            headers: default.headers.min(longest),
            body: default.body.min(longest),
            answer: default.answer.min(longest),
            stall: default.stall.min(longest),
            idle: default.idle.min(longest),
            shutdown: default.shutdown.min(longest),
            recheck: default.recheck.min(longest),
        }
    }
}
