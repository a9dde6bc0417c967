//! A connection: its streams, and how it ends.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::frame::Frame;
use super::headers::Headers;
use super::pump;
use super::stream::Stream;

/// How many streams a connection may have at once. A browser that goes through `kubectl port-forward` opens
/// two for each of its connections.
pub(super) const STREAMS_MAX: usize = 256;
/// The largest piece of data that is read or written at once.
pub(super) const PIECE_BYTES: usize = 16 * 1024;
/// How many such pieces wait to be written, all streams together.
const PIECES_TO_WRITE: usize = 32;
/// How many pieces wait to be read, for each stream.
pub(super) const PIECES_TO_READ: usize = 4;
/// New streams that wait to be taken up.
const NEW_STREAMS: usize = 16;
/// How long the other side has to read the end of what we wrote, and to hang up.
const LINGER: Duration = Duration::from_secs(5);

/// Who dialled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// We did: our streams have odd numbers.
    Client,
    /// The other side did.
    Server,
}

/// Something to write.
pub(super) enum Out {
    /// A frame, and the place it holds in the queue.
    Frame(Frame, Option<OwnedSemaphorePermit>),
    /// All is said.
    End,
}

/// What the connection, its streams and its pump share.
pub(super) struct Shared {
    pub(super) role: Role,
    pub(super) out: mpsc::UnboundedSender<Out>,
    /// Places in the queue for data and for answers that the other side can provoke at will.
    pub(super) places: Arc<Semaphore>,
    /// The other side has hung up, or cannot be understood.
    pub(super) hung_up: CancellationToken,
    /// Both directions are over, whatever is left to say.
    pub(super) gone: CancellationToken,
    table: Mutex<Table>,
}

/// The streams there are.
pub(super) struct Table {
    pub(super) streams: HashMap<u32, Entry>,
    next: u32,
    /// The last number the other side used.
    pub(super) last: u32,
    /// The other side has said good-bye: that it hangs up is no surprise, in whatever way it does.
    pub(super) leaving: bool,
    /// Nothing more will be read.
    pub(super) over: bool,
}

/// Where the data of a stream go. Dropped when no more will come.
pub(super) struct Entry {
    pub(super) data: Option<mpsc::Sender<Bytes>>,
    pub(super) reset: CancellationToken,
}

impl Shared {
    pub(super) fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues what is bounded by itself: the ends of streams, answers to their beginnings.
    pub(super) fn tell(&self, frame: Frame) -> io::Result<()> {
        let told = self.out.send(Out::Frame(frame, None));
        told.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    /// Makes a stream that has a number.
    pub(super) fn stream(self: &Arc<Self>, table: &mut Table, id: u32, headers: Headers) -> Stream {
        let (data, queue) = mpsc::channel(PIECES_TO_READ);
        let reset = CancellationToken::new();
        let entry = Entry {
            data: Some(data),
            reset: reset.clone(),
        };
        table.streams.insert(id, entry);
        Stream::new(Arc::clone(self), id, headers, queue, reset)
    }
}

/// See the [module](self). Dropping it breaks it off; [`Connection::close`] lets what was written arrive.
pub struct Connection {
    shared: Arc<Shared>,
    incoming: mpsc::Receiver<Stream>,
    pumps: TaskTracker,
}

impl Connection {
    /// Speaks over a connection on which both sides have agreed to speak SPDY.
    pub fn new(io: impl AsyncRead + AsyncWrite + Send + 'static, role: Role) -> Self {
        let (out, queue) = mpsc::unbounded_channel();
        let (accepted, incoming) = mpsc::channel(NEW_STREAMS);
        let shared = Arc::new(Shared {
            role,
            out,
            places: Arc::new(Semaphore::new(PIECES_TO_WRITE)),
            hung_up: CancellationToken::new(),
            gone: CancellationToken::new(),
            table: Mutex::new(Table {
                streams: HashMap::new(),
                next: if role == Role::Client { 1 } else { 2 },
                last: 0,
                leaving: false,
                over: false,
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

    /// Opens a stream. Does not wait for the other side to take it up: one that is refused ends with an
    /// error.
    pub fn open(&self, headers: Headers) -> io::Result<Stream> {
        let mut table = self.shared.table();
        if table.over || table.streams.len() >= STREAMS_MAX {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let id = table.next;
        table.next += 2;
        let opening = Frame::Open {
            id,
            headers: headers.clone(),
            fin: false,
        };
        let stream = self.shared.stream(&mut table, id, headers);
        // Under the lock: numbers must arrive in order. A stream that is dropped takes the lock, too.
        let told = self.shared.tell(opening);
        drop(table);
        told.map(|()| stream)
    }

    /// The next stream that the other side opens; none when it has hung up.
    pub async fn accept(&mut self) -> Option<Stream> {
        self.incoming.recv().await
    }

    /// Waits for the other side to hang up.
    pub fn hung_up(&self) -> impl Future<Output = ()> + Send + 'static {
        self.shared.hung_up.clone().cancelled_owned()
    }

    /// Says good-bye, and waits until what was written has arrived and the other side has hung up, but not
    /// for long.
    pub async fn close(self) {
        let last = self.shared.table().last;
        if self.shared.tell(Frame::GoAway { last }).is_ok() {
            drop(self.shared.out.send(Out::End));
        }
        drop(tokio::time::timeout(LINGER, self.pumps.wait()).await);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.shared.gone.cancel();
    }
}
