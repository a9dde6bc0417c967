//! One stream of a connection: bytes both ways, each ending on its own.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, PollSemaphore};

use super::connection::{Out, PIECE_BYTES, Shared};
use super::frame::Frame;
use super::headers::Headers;

/// See the [module](self). Dropping it says that nothing more comes, and that nothing more is read.
pub struct Stream {
    shared: Arc<Shared>,
    id: u32,
    headers: Headers,
    queue: mpsc::Receiver<Bytes>,
    reset: CancellationToken,
    /// What was taken from the queue and not read yet.
    piece: Bytes,
    places: PollSemaphore,
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
        let places = PollSemaphore::new(Arc::clone(&shared.places));
        Self {
            shared,
            id,
            headers,
            queue,
            reset,
            piece: Bytes::new(),
            places,
            finished: false,
        }
    }

    /// What the side that opened it said about it.
    pub fn headers(&self) -> &Headers {
        &self.headers
    }

    /// Says that nothing more comes.
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
        // A connection that is gone needs no end of a stream.
        drop(self.shared.tell(end));
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.piece.is_empty() {
            match ready!(self.queue.poll_recv(context)) {
                Some(piece) => self.piece = piece,
                None if self.reset.is_cancelled() => {
                    return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
                }
                None => return Poll::Ready(Ok(())),
            }
        }
        let length = self.piece.len().min(buffer.remaining());
        buffer.put_slice(&self.piece[..length]);
        self.piece.advance(length);
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
        let Some(place) = ready!(self.places.poll_acquire(context)) else {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        };
        let length = bytes.len().min(PIECE_BYTES);
        let data = Frame::Data {
            id: self.id,
            bytes: Bytes::copy_from_slice(&bytes[..length]),
            fin: false,
        };
        let told = self.shared.out.send(Out::Frame(data, Some(place)));
        Poll::Ready(match told {
            Ok(()) => Ok(length),
            Err(_) => Err(io::ErrorKind::BrokenPipe.into()),
        })
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
