//! A SPDY connection, its streams, and its shutdown.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::frame::Frame;
use super::headers::Headers;
use super::pump;
use super::stream::Stream;
use crate::sync::lock;

/// Concurrent streams of a connection. A browser behind `kubectl port-forward` opens two for each of its connections.
pub(super) const STREAMS_MAX: usize = 256;
/// The largest chunk of data that is read or written at once.
pub(super) const CHUNK_BYTES: usize = 16 * 1024;
/// Frames that wait to be written and that a peer can cause at will: data, ping replies, replies to new streams. Writers
/// wait for a permit.
const PERMITS_TO_WRITE: usize = 32;
/// The queue of frames to write. Outside the permits, each stream queues at most its opening and its end, and the
/// connection its GOAWAY and the end marks of both halves. A full queue means a peer that does not read: the connection
/// is aborted.
const FRAMES_TO_WRITE: usize = PERMITS_TO_WRITE + 2 * STREAMS_MAX + 4;
/// Received chunks that wait to be read, for each stream. A full queue makes the connection's reader wait.
pub(super) const CHUNKS_TO_READ: usize = 4;
/// Streams of the peer that wait to be accepted. A full queue makes the connection's reader wait.
const UNACCEPTED_STREAMS: usize = 16;
/// How long [`Connection::close`] waits for the peer to read what was written and to disconnect.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// We connected: our streams have odd ids.
    Client,
    Server,
}

/// An entry of the write queue.
pub(super) enum Out {
    /// A frame, and the permit that it holds until it is written.
    Frame(Frame, Option<OwnedSemaphorePermit>),
    /// Closes the sending direction.
    End,
}

/// State that the connection shares with its streams and its pump.
pub(super) struct Shared {
    pub(super) role: Role,
    out: mpsc::Sender<Out>,
    /// See [`PERMITS_TO_WRITE`].
    pub(super) permits: Arc<Semaphore>,
    /// The peer has disconnected or violated the protocol.
    pub(super) disconnected: CancellationToken,
    /// Aborts both directions, without writing what is queued.
    pub(super) aborted: CancellationToken,
    table: Mutex<Table>,
}

/// The open streams.
pub(super) struct Table {
    pub(super) streams: HashMap<u32, Entry>,
    /// The id of our next stream.
    next_id: u32,
    /// The highest id that the peer used.
    pub(super) last_peer_id: u32,
    /// The peer has sent GOAWAY: when it disconnects now, even abruptly, that is no error.
    pub(super) peer_leaving: bool,
    /// Reading has ended.
    pub(super) closed: bool,
}

/// The receiving side of a stream. The sender is dropped at the end of the data.
pub(super) struct Entry {
    pub(super) data: Option<mpsc::Sender<Bytes>>,
    pub(super) reset: CancellationToken,
}

impl Shared {
    pub(super) fn table(&self) -> MutexGuard<'_, Table> {
        lock(&self.table)
    }

    /// Queues a frame without a permit: the opening or the end of a stream, or GOAWAY.
    pub(super) fn send(&self, frame: Frame) -> io::Result<()> {
        self.enqueue(Out::Frame(frame, None))
    }

    pub(super) fn enqueue(&self, out: Out) -> io::Result<()> {
        self.out.try_send(out).map_err(|error| {
            if matches!(error, TrySendError::Full(_)) {
                tracing::debug!("aborting a SPDY connection whose peer does not read");
                self.aborted.cancel();
            }
            io::ErrorKind::BrokenPipe.into()
        })
    }

    pub(super) fn new_stream(
        self: &Arc<Self>,
        table: &mut Table,
        id: u32,
        headers: Headers,
    ) -> Stream {
        let (data, queue) = mpsc::channel(CHUNKS_TO_READ);
        let reset = CancellationToken::new();
        let entry = Entry {
            data: Some(data),
            reset: reset.clone(),
        };
        table.streams.insert(id, entry);
        Stream::new(Arc::clone(self), id, headers, queue, reset)
    }
}

/// See the [module](self). Dropping it aborts it; [`Connection::close`] first delivers what was written.
pub struct Connection {
    shared: Arc<Shared>,
    incoming: mpsc::Receiver<Stream>,
    pumps: TaskTracker,
}

impl Connection {
    /// `io` must have been upgraded to SPDY.
    pub fn new(io: impl AsyncRead + AsyncWrite + Send + 'static, role: Role) -> Self {
        let (out, queue) = mpsc::channel(FRAMES_TO_WRITE);
        let (accepted, incoming) = mpsc::channel(UNACCEPTED_STREAMS);
        let shared = Arc::new(Shared {
            role,
            out,
            permits: Arc::new(Semaphore::new(PERMITS_TO_WRITE)),
            disconnected: CancellationToken::new(),
            aborted: CancellationToken::new(),
            table: Mutex::new(Table {
                streams: HashMap::new(),
                next_id: if role == Role::Client { 1 } else { 2 },
                last_peer_id: 0,
                peer_leaving: false,
                closed: false,
            }),
        });
        let (reader, writer) = tokio::io::split(io);
        let pumps = TaskTracker::new();
        pumps.spawn(pump::read(reader, Arc::clone(&shared), accepted));
        pumps.spawn(pump::write(writer, Arc::clone(&shared), queue));
        pumps.close();
        Self {
            shared,
            incoming,
            pumps,
        }
    }

    /// Opens a stream without waiting for the peer's reply: reading from a refused stream fails.
    pub fn open(&self, headers: Headers) -> io::Result<Stream> {
        let mut table = self.shared.table();
        if table.closed || table.streams.len() >= STREAMS_MAX {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let id = table.next_id;
        table.next_id += 2;
        let opening = Frame::Open {
            id,
            headers: headers.clone(),
            fin: false,
        };
        let stream = self.shared.new_stream(&mut table, id, headers);
        // Sent under the lock, because ids must arrive in order. Dropping a stream takes the lock: release it first.
        let sent = self.shared.send(opening);
        drop(table);
        sent.map(|()| stream)
    }

    /// The next stream that the peer opens; `None` when it has disconnected.
    pub async fn accept(&mut self) -> Option<Stream> {
        self.incoming.recv().await
    }

    /// Waits for the peer to disconnect.
    pub fn disconnected(&self) -> impl Future<Output = ()> + Send + 'static {
        self.shared.disconnected.clone().cancelled_owned()
    }

    /// Sends GOAWAY, and waits for a limited time until what was written has arrived and the peer has disconnected.
    pub async fn close(self) {
        let last = self.shared.table().last_peer_id;
        if self.shared.send(Frame::GoAway { last }).is_ok() {
            drop(self.shared.enqueue(Out::End));
        }
        drop(tokio::time::timeout(CLOSE_TIMEOUT, self.pumps.wait()).await);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.shared.aborted.cancel();
    }
}
