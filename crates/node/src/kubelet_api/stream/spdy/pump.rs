//! The reading and the writing task of a connection.
//!
//! Memory is bounded whatever the peer sends; a protocol error ends the connection.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::mpsc;

use super::connection::{CHUNK_BYTES, Out, Role, STREAMS_MAX, Shared};
use super::error::SpdyError;
use super::frame::{Frame, HEAD_BYTES, Head, REFUSED_STREAM};
use super::headers::{HeaderCompressor, HeaderDecompressor, Headers};
use super::stream::Stream;

/// Frames that are combined into one write.
const BATCH_FRAMES: usize = 16;

/// Reads until the peer disconnects or violates the protocol.
pub(super) async fn read(
    io: impl AsyncRead + Unpin,
    shared: Arc<Shared>,
    accepted: mpsc::Sender<Stream>,
) {
    let mut reading = Reading {
        io: BufReader::with_capacity(CHUNK_BYTES, io),
        shared: Arc::clone(&shared),
        decompressor: HeaderDecompressor::new(),
        accepted,
    };
    let ended = tokio::select! {
        ended = reading.read_frames() => ended,
        () = shared.aborted.cancelled() => Ok(()),
    };
    if let Err(error) = &ended {
        tracing::debug!(%error, "reading from a SPDY connection failed");
    }
    close_streams(&shared, ended.is_err());
    shared.disconnected.cancel();
    // The peer may have closed one direction only: write what is queued before closing ours.
    drop(shared.enqueue(Out::End));
}

/// Ends the data of all streams, with an error if the connection failed.
fn close_streams(shared: &Shared, failed: bool) {
    let mut table = shared.table();
    table.closed = true;
    let expected = table.peer_leaving;
    for (_, entry) in table.streams.drain() {
        if failed && !expected {
            entry.reset.cancel();
        }
    }
}

struct Reading<R> {
    io: BufReader<R>,
    shared: Arc<Shared>,
    decompressor: HeaderDecompressor,
    accepted: mpsc::Sender<Stream>,
}

impl<R: AsyncRead + Unpin> Reading<R> {
    async fn read_frames(&mut self) -> Result<(), SpdyError> {
        while let Some(head) = self.read_head().await? {
            match head {
                Head::Data { id, fin, length } => self.receive_data(id, fin, length).await?,
                Head::Control { kind, fin, length } => {
                    let mut body = vec![0; length];
                    self.io.read_exact(&mut body).await?;
                    let frame = Frame::parse(kind, fin, &body, &mut self.decompressor)?;
                    self.handle_control(frame).await?;
                }
            }
        }
        Ok(())
    }

    /// `None` when the connection ends between two frames.
    async fn read_head(&mut self) -> Result<Option<Head>, SpdyError> {
        let mut head = [0; HEAD_BYTES];
        if self.io.read(&mut head[..1]).await? == 0 {
            return Ok(None);
        }
        self.io.read_exact(&mut head[1..]).await?;
        Head::parse(head).map(Some)
    }

    /// Passes the data of a frame to its stream; discards data of closed streams.
    async fn receive_data(&mut self, id: u32, fin: bool, mut left: usize) -> Result<(), SpdyError> {
        let queue = {
            let table = self.shared.table();
            table.streams.get(&id).and_then(|entry| entry.data.clone())
        };
        while left > 0 {
            let mut chunk = vec![0; left.min(CHUNK_BYTES)];
            self.io.read_exact(&mut chunk).await?;
            left -= chunk.len();
            if let Some(queue) = &queue {
                drop(queue.send(Bytes::from(chunk)).await);
            }
        }
        if fin {
            self.end_data(id);
        }
        Ok(())
    }

    fn end_data(&self, id: u32) {
        if let Some(entry) = self.shared.table().streams.get_mut(&id) {
            entry.data = None;
        }
    }

    async fn handle_control(&mut self, frame: Frame) -> Result<(), SpdyError> {
        match frame {
            Frame::Open { id, headers, fin } => self.open_stream(id, headers, fin).await?,
            Frame::Reply { id, fin: true, .. } | Frame::Headers { id, fin: true, .. } => {
                self.end_data(id);
            }
            Frame::Reset { id, .. } => {
                if let Some(entry) = self.shared.table().streams.remove(&id) {
                    entry.reset.cancel();
                }
            }
            Frame::Ping(id) if self.is_peer_id(id) => self.reply(Frame::Ping(id)).await,
            // Open streams continue until the connection ends.
            Frame::GoAway { .. } => self.shared.table().peer_leaving = true,
            _ => {}
        }
        Ok(())
    }

    /// Whether the peer assigns this id.
    fn is_peer_id(&self, id: u32) -> bool {
        (id % 2 == 1) == (self.shared.role == Role::Server)
    }

    /// Replies take a permit, so that they do not pile up for a peer that never reads.
    async fn reply(&mut self, frame: Frame) {
        let permits = Arc::clone(&self.shared.permits);
        if let Ok(permit) = permits.acquire_owned().await {
            drop(self.shared.enqueue(Out::Frame(frame, Some(permit))));
        }
    }

    async fn open_stream(&mut self, id: u32, headers: Headers, fin: bool) -> Result<(), SpdyError> {
        let stream = {
            let mut table = self.shared.table();
            if id == 0 || !self.is_peer_id(id) || id <= table.last_peer_id {
                return Err(SpdyError::StreamId(id));
            }
            table.last_peer_id = id;
            (table.streams.len() < STREAMS_MAX)
                .then(|| self.shared.new_stream(&mut table, id, headers))
        };
        let Some(stream) = stream else {
            let status = REFUSED_STREAM;
            self.reply(Frame::Reset { id, status }).await;
            return Ok(());
        };
        if fin {
            self.end_data(id);
        }
        let headers = Headers::default();
        let fin = false;
        self.reply(Frame::Reply { id, headers, fin }).await;
        // If the connection accepts no streams, dropping the stream closes it.
        drop(self.accepted.send(stream).await);
        Ok(())
    }
}

/// Writes the queue until its end mark, or until writing fails.
pub(super) async fn write(
    mut io: impl AsyncWrite + Unpin,
    shared: Arc<Shared>,
    mut queue: mpsc::Receiver<Out>,
) {
    let written = tokio::select! {
        written = write_all(&mut io, &mut queue) => written,
        () = shared.aborted.cancelled() => Ok(()),
    };
    if let Err(error) = written {
        // Reading continues: the peer's last data may still arrive.
        tracing::debug!(%error, "writing to a SPDY connection failed");
    }
    queue.close();
    // Wakes writers that wait for a permit.
    shared.permits.close();
    // The reading task continues until the peer has disconnected.
    drop(io.shutdown().await);
}

async fn write_all(
    io: &mut (impl AsyncWrite + Unpin),
    queue: &mut mpsc::Receiver<Out>,
) -> std::io::Result<()> {
    let (mut compressor, mut bytes) = (HeaderCompressor::new(), BytesMut::new());
    let mut batch = Vec::with_capacity(BATCH_FRAMES);
    while queue.recv_many(&mut batch, BATCH_FRAMES).await > 0 {
        let mut ended = false;
        let mut permits = Vec::new();
        for out in batch.drain(..) {
            match out {
                Out::Frame(frame, permit) if !ended => {
                    frame.write(&mut compressor, &mut bytes);
                    permits.extend(permit);
                }
                Out::Frame(..) => {}
                Out::End => ended = true,
            }
        }
        io.write_all(&bytes).await?;
        io.flush().await?;
        bytes.clear();
        drop(permits);
        if ended {
            break;
        }
    }
    Ok(())
}
