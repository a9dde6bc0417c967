//! One stream of a connection, whose two directions close independently.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, PollSemaphore};

use super::connection::{CHUNK_BYTES, Out, Shared};
use super::frame::Frame;
use super::headers::Headers;

/// See the [module](self). Dropping it closes both directions.
pub struct Stream {
    shared: Arc<Shared>,
    id: u32,
    headers: Headers,
    queue: mpsc::Receiver<Bytes>,
    reset: CancellationToken,
    /// The unread rest of the current chunk.
    chunk: Bytes,
    permits: PollSemaphore,
    finished: bool,
}

impl Stream {
    pub(super) fn new(
        shared: Arc<Shared>,
        id: u32,
        headers: Headers,
        queue: mpsc::Receiver<Bytes>,
        reset: CancellationToken,
    ) -> Self {
        let permits = PollSemaphore::new(Arc::clone(&shared.permits));
        Self {
            shared,
            id,
            headers,
            queue,
            reset,
            chunk: Bytes::new(),
            permits,
            finished: false,
        }
    }

    /// The headers that the stream was opened with.
    pub fn headers(&self) -> &Headers {
        &self.headers
    }

    /// Closes the sending direction.
    pub fn finish(&mut self) {
        if self.finished {
            return;
        }
        self.finished = true;
        let end = Frame::Data {
            id: self.id,
            bytes: Bytes::new(),
            fin: true,
        };
        // Fails only if the connection is gone.
        drop(self.shared.send(end));
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.chunk.is_empty() {
            match ready!(self.queue.poll_recv(context)) {
                Some(chunk) => self.chunk = chunk,
                None if self.reset.is_cancelled() => {
                    return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
                }
                None => return Poll::Ready(Ok(())),
            }
        }
        let length = self.chunk.len().min(buffer.remaining());
        buffer.put_slice(&self.chunk[..length]);
        self.chunk.advance(length);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.finished || self.reset.is_cancelled() {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let Some(permit) = ready!(self.permits.poll_acquire(context)) else {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        };
        let length = bytes.len().min(CHUNK_BYTES);
        let data = Frame::Data {
            id: self.id,
            bytes: Bytes::copy_from_slice(&bytes[..length]),
            fin: false,
        };
        let queued = self.shared.enqueue(Out::Frame(data, Some(permit)));
        Poll::Ready(queued.map(|()| length))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.finish();
        Poll::Ready(Ok(()))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.finish();
        self.shared.table().streams.remove(&self.id);
    }
}
