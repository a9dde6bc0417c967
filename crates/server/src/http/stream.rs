//! A byte stream with timeouts: for the first bytes of a client after its handshake, and for a client that
//! stops reading. It also lingers before it closes, because closing a socket with unread bytes makes the
//! kernel reset the connection, and the client would lose the answer.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use crate::limits;

pub(super) struct TimedStream<S> {
    stream: S,
    /// How many of the first bytes have not arrived; at 0, `first_bytes` no longer applies.
    missing: usize,
    first_bytes: Pin<Box<Sleep>>,
    /// Runs while something waits to be written.
    stalled: Option<Pin<Box<Sleep>>>,
    stall: Duration,
    /// Set when writes may stall without a timeout.
    may_stall: Arc<AtomicBool>,
    /// Runs after shutdown, while the stream waits for the client to close too.
    lingering: Option<Pin<Box<Sleep>>>,
    /// How many bytes it still reads and discards while it lingers.
    discard_left: usize,
}

impl<S> TimedStream<S> {
    /// `opening` bytes must arrive within `first`, and no write may stall longer than `stall`.
    pub(super) fn new(stream: S, opening: usize, first: Duration, stall: Duration) -> Self {
        Self {
            stream,
            missing: opening,
            first_bytes: Box::pin(tokio::time::sleep(first)),
            stalled: None,
            stall,
            may_stall: Arc::default(),
            lingering: None,
            discard_left: limits::REFUSED_BYTES_MAX,
        }
    }

    /// The flag that turns the write timeout off.
    pub(super) fn may_stall(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.may_stall)
    }

    /// Passes the outcome of a write on, or fails it if writes have stalled for too long.
    fn check_stall<T>(
        &mut self,
        context: &mut Context<'_>,
        outcome: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if outcome.is_ready() || self.may_stall.load(Ordering::Relaxed) {
            self.stalled = None;
            return outcome;
        }
        let until = Instant::now() + self.stall;
        let stalled = self
            .stalled
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until)));
        stalled.as_mut().poll(context).map(|()| {
            let words = "the client stopped reading";
            Err(io::Error::new(io::ErrorKind::TimedOut, words))
        })
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let outcome = Pin::new(&mut this.stream).poll_read(context, buffer);
        if this.missing == 0 {
            return outcome;
        }
        let came = buffer.filled().len() - before;
        this.missing = this.missing.saturating_sub(came);
        if outcome.is_pending() && this.first_bytes.as_mut().poll(context).is_ready() {
            let words = "the client sent nothing after the handshake";
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, words)));
        }
        outcome
    }
}

impl<S: AsyncRead + Unpin> TimedStream<S> {
    /// Reads and discards until the client has closed its side, within bounds.
    fn linger(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let until = Instant::now() + limits::LINGER;
        let lingering = self
            .lingering
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until)));
        if lingering.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        let mut discarded = [0; 4096];
        while self.discard_left > 0 {
            let mut buffer = ReadBuf::new(&mut discarded);
            match Pin::new(&mut self.stream).poll_read(context, &mut buffer) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {
                    self.discard_left = self.discard_left.saturating_sub(buffer.filled().len());
                }
                Poll::Ready(_) => break,
            }
        }
        Poll::Ready(())
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for TimedStream<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let outcome = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.check_stall(context, outcome)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let outcome = Pin::new(&mut this.stream).poll_write_vectored(context, slices);
        this.check_stall(context, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let outcome = Pin::new(&mut this.stream).poll_flush(context);
        this.check_stall(context, outcome)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.lingering.is_none() {
            let outcome = Pin::new(&mut this.stream).poll_shutdown(context);
            match this.check_stall(context, outcome) {
                Poll::Ready(Ok(())) => {}
                other => return other,
            }
        }
        this.linger(context).map(Ok)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    const FIRST: Duration = Duration::from_millis(50);
    const STALL: Duration = Duration::from_secs(1);

    #[tokio::test]
    async fn a_client_that_does_not_read_is_given_up() {
        let (near, mut far) = duplex(8);
        let mut timed = TimedStream::new(near, 0, FIRST, STALL);
        let started = Instant::now();
        let why = timed.write_all(&[0; 100]).await.unwrap_err();
        assert_eq!(why.kind(), io::ErrorKind::TimedOut);
        assert!(started.elapsed() >= STALL);
        // What was sent before is still there for it.
        let mut sent = [0; 8];
        far.read_exact(&mut sent).await.unwrap();
    }

    #[tokio::test]
    async fn a_client_with_a_terminal_may_stop_reading() {
        let (near, mut far) = duplex(8);
        let short = Duration::from_millis(1);
        let mut timed = TimedStream::new(near, 0, FIRST, short);
        timed.may_stall().store(true, Ordering::Relaxed);
        let writing = tokio::spawn(async move { timed.write_all(&[0; 16]).await });
        tokio::time::sleep(short * 20).await;
        far.read_exact(&mut [0; 16]).await.unwrap();
        writing.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_slow_reader_is_a_reader() {
        let (near, mut far) = duplex(8);
        let mut timed = TimedStream::new(near, 0, FIRST, STALL);
        let reading = tokio::spawn(async move {
            let mut sent = [0; 8];
            for _ in 0..20 {
                tokio::time::sleep(STALL / 10).await;
                far.read_exact(&mut sent).await.unwrap();
            }
        });
        timed.write_all(&[0; 160]).await.unwrap();
        reading.await.unwrap();
    }

    #[tokio::test]
    async fn what_a_client_still_sends_is_read_before_hanging_up() {
        let (near, mut far) = duplex(8);
        let mut timed = TimedStream::new(near, 0, FIRST, STALL);
        timed.write_all(b"refused").await.unwrap();
        let sending = tokio::spawn(async move {
            far.write_all(&vec![0; 100_000]).await.unwrap();
            let mut answer = Vec::new();
            far.read_to_end(&mut answer).await.unwrap();
            answer
        });
        timed.shutdown().await.unwrap();
        drop(timed);
        assert_eq!(sending.await.unwrap(), b"refused");
    }

    #[tokio::test]
    async fn a_client_that_never_hangs_up_is_left() {
        let (near, far) = duplex(8);
        let mut timed = TimedStream::new(near, 0, FIRST, STALL);
        let started = Instant::now();
        timed.shutdown().await.unwrap();
        assert!(started.elapsed() >= limits::LINGER);
        drop(far);
    }

    #[tokio::test]
    async fn a_client_that_sends_nothing_is_given_up() {
        let (near, mut far) = duplex(64);
        let mut timed = TimedStream::new(near, 4, FIRST, STALL);
        far.write_all(b"abc").await.unwrap();
        let mut buffer = [0; 64];
        assert_eq!(timed.read(&mut buffer).await.unwrap(), 3);
        let why = timed.read(&mut buffer).await.unwrap_err();
        assert_eq!(why.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn after_its_first_bytes_a_client_may_be_silent() {
        let (near, mut far) = duplex(64);
        let mut timed = TimedStream::new(near, 4, FIRST, STALL);
        far.write_all(b"abcd").await.unwrap();
        let mut buffer = [0; 64];
        assert_eq!(timed.read(&mut buffer).await.unwrap(), 4);
        tokio::spawn(async move {
            tokio::time::sleep(FIRST * 2).await;
            far.write_all(b"e").await.unwrap();
        });
        assert_eq!(timed.read(&mut buffer).await.unwrap(), 1);
    }
}
