//! The two halves of a connection at work: frames in, frames out.
//!
//! Whatever comes in, what is kept of it is bounded; what cannot be understood ends the connection.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::mpsc;

use super::connection::{Out, PIECE_BYTES, Role, STREAMS_MAX, Shared};
use super::error::SpdyError;
use super::frame::{Frame, HEAD_BYTES, Head, REFUSED_STREAM};
use super::headers::{Headers, Packer, Unpacker};
use super::stream::Stream;

/// How many frames are put together into one write.
const FRAMES_AT_ONCE: usize = 16;

/// Reads until the other side hangs up, or says something that cannot be understood.
pub(super) async fn read(
    io: impl AsyncRead + Unpin,
    shared: Arc<Shared>,
    accepted: mpsc::Sender<Stream>,
) {
    let mut reading = Reading {
        io: BufReader::with_capacity(PIECE_BYTES, io),
        shared: Arc::clone(&shared),
        unpacker: Unpacker::new(),
        accepted,
    };
    let ended = tokio::select! {
        ended = reading.all() => ended,
        () = shared.gone.cancelled() => Ok(()),
    };
    if let Err(error) = &ended {
        tracing::debug!(%error, "a SPDY connection ended");
    }
    end(&shared, ended.is_err());
    shared.hung_up.cancel();
    // What was queued before still goes out, to a side that may have closed one direction only.
    drop(shared.out.send(Out::End));
}

/// No stream will read anything more.
fn end(shared: &Shared, broken: bool) {
    let mut table = shared.table();
    table.over = true;
    let leaving = table.leaving;
    for (_, entry) in table.streams.drain() {
        if broken && !leaving {
            entry.reset.cancel();
        }
    }
}

struct Reading<R> {
    io: BufReader<R>,
    shared: Arc<Shared>,
    unpacker: Unpacker,
    accepted: mpsc::Sender<Stream>,
}

impl<R: AsyncRead + Unpin> Reading<R> {
    async fn all(&mut self) -> Result<(), SpdyError> {
        while let Some(head) = self.head().await? {
            match head {
                Head::Data { id, fin, length } => self.data(id, fin, length).await?,
                Head::Control { kind, fin, length } => {
                    let mut body = vec![0; length];
                    self.io.read_exact(&mut body).await?;
                    let frame = Frame::parse(kind, fin, &body, &mut self.unpacker)?;
                    self.control(frame).await?;
                }
            }
        }
        Ok(())
    }

    /// The next head; none when the connection ends between two frames.
    async fn head(&mut self) -> Result<Option<Head>, SpdyError> {
        let mut head = [0; HEAD_BYTES];
        if self.io.read(&mut head[..1]).await? == 0 {
            return Ok(None);
        }
        self.io.read_exact(&mut head[1..]).await?;
        Head::parse(head).map(Some)
    }

    /// Hands on the data of a frame, piece by piece; those of a stream that is gone are passed over.
    async fn data(&mut self, id: u32, fin: bool, mut left: usize) -> Result<(), SpdyError> {
        let queue = {
            let table = self.shared.table();
            table.streams.get(&id).and_then(|entry| entry.data.clone())
        };
        while left > 0 {
            let mut piece = vec![0; left.min(PIECE_BYTES)];
            self.io.read_exact(&mut piece).await?;
            left -= piece.len();
            if let Some(queue) = &queue {
                drop(queue.send(Bytes::from(piece)).await);
            }
        }
        if fin {
            self.no_more(id);
        }
        Ok(())
    }

    fn no_more(&self, id: u32) {
        if let Some(entry) = self.shared.table().streams.get_mut(&id) {
            entry.data = None;
        }
    }

    async fn control(&mut self, frame: Frame) -> Result<(), SpdyError> {
        match frame {
            Frame::Open { id, headers, fin } => self.opened(id, headers, fin).await?,
            Frame::Reply { id, fin: true, .. } | Frame::Headers { id, fin: true, .. } => {
                self.no_more(id);
            }
            Frame::Reset { id, .. } => {
                if let Some(entry) = self.shared.table().streams.remove(&id) {
                    entry.reset.cancel();
                }
            }
            Frame::Ping(id) if self.is_theirs(id) => self.answer(Frame::Ping(id)).await,
            // The streams there are go on until the connection ends.
            Frame::GoAway { .. } => self.shared.table().leaving = true,
            _ => {}
        }
        Ok(())
    }

    /// Has this number been given by the other side?
    fn is_theirs(&self, id: u32) -> bool {
        (id % 2 == 1) == (self.shared.role == Role::Server)
    }

    /// Answers take a place, so that they do not pile up for a peer that asks and never reads.
    async fn answer(&mut self, frame: Frame) {
        let places = Arc::clone(&self.shared.places);
        if let Ok(place) = places.acquire_owned().await {
            drop(self.shared.out.send(Out::Frame(frame, Some(place))));
        }
    }

    async fn opened(&mut self, id: u32, headers: Headers, fin: bool) -> Result<(), SpdyError> {
        let stream = {
            let mut table = self.shared.table();
            if id == 0 || !self.is_theirs(id) || id <= table.last {
                return Err(SpdyError::StreamId(id));
            }
            table.last = id;
            (table.streams.len() < STREAMS_MAX).then(|| self.shared.stream(&mut table, id, headers))
        };
        let Some(stream) = stream else {
            let status = REFUSED_STREAM;
            self.answer(Frame::Reset { id, status }).await;
            return Ok(());
        };
        if fin {
            self.no_more(id);
        }
        let headers = Headers::default();
        let fin = false;
        self.answer(Frame::Reply { id, headers, fin }).await;
        // Nobody may want streams from the other side: then it ends by being dropped.
        drop(self.accepted.send(stream).await);
        Ok(())
    }
}

/// Writes what is queued until all is said, or nobody listens any more.
pub(super) async fn write(
    mut io: impl AsyncWrite + Unpin,
    shared: Arc<Shared>,
    mut queue: mpsc::UnboundedReceiver<Out>,
) {
    let written = tokio::select! {
        written = write_all(&mut io, &mut queue) => written,
        () = shared.gone.cancelled() => Ok(()),
    };
    if let Err(error) = written {
        // What the other side wrote before it hung up is still to be read.
        tracing::debug!(%error, "a SPDY connection cannot be written to");
    }
    queue.close();
    // Wakes those who wait for a place.
    shared.places.close();
    // The reading half goes on until the other side has hung up, too.
    drop(io.shutdown().await);
}

async fn write_all(
    io: &mut (impl AsyncWrite + Unpin),
    queue: &mut mpsc::UnboundedReceiver<Out>,
) -> std::io::Result<()> {
    let (mut packer, mut bytes) = (Packer::new(), BytesMut::new());
    let mut batch = Vec::with_capacity(FRAMES_AT_ONCE);
    while queue.recv_many(&mut batch, FRAMES_AT_ONCE).await > 0 {
        let mut ended = false;
        let mut places = Vec::new();
        for out in batch.drain(..) {
            match out {
                Out::Frame(frame, place) if !ended => {
                    frame.write(&mut packer, &mut bytes);
                    places.extend(place);
                }
                Out::Frame(..) => {}
                Out::End => ended = true,
            }
        }
        io.write_all(&bytes).await?;
        io.flush().await?;
        bytes.clear();
        drop(places);
        if ended {
            break;
        }
    }
    Ok(())
}
