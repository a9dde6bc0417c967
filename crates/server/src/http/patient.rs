//! A stream that does not wait for ever: neither for the first bytes of a client that has finished its
//! handshake, nor for a client that stops reading. And one that does not hang up rudely: closing a socket
//! with unread bytes makes the kernel reset it, and the client loses the answer that was on its way.
//! What the bytes mean is no concern of this room.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use super::limits;

/// A stream with bounds on how long the other side may do nothing.
pub(super) struct Patient<S> {
    stream: S,
    /// Bytes still missing of those that must come by `first`; then that deadline is over.
    missing: usize,
    first: Pin<Box<Sleep>>,
    /// Runs while something waits to be written.
    stalled: Option<Pin<Box<Sleep>>>,
    stall: Duration,
    /// Set, a write may hang for as long as it likes.
    untiring: Arc<AtomicBool>,
    /// Runs once all is said and the stream waits for the other side to hang up too.
    lingering: Option<Pin<Box<Sleep>>>,
    /// Bytes that are still read, and thrown away, while it waits.
    unwanted: usize,
}

impl<S> Patient<S> {
    /// Wraps a stream: `opening` bytes must arrive within `first`, and no write may hang for `stall`.
    pub(super) fn new(stream: S, opening: usize, first: Duration, stall: Duration) -> Self {
        Self {
            stream,
            missing: opening,
            first: Box::pin(tokio::time::sleep(first)),
            stalled: None,
            stall,
            untiring: Arc::default(),
            lingering: None,
            unwanted: limits::REFUSED_BYTES_MAX,
        }
    }

    /// Where it is said that writes may hang from now on.
    pub(super) fn untiring(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.untiring)
    }

    /// Lets the outcome of a write pass, unless writes have been hanging for too long.
    fn judge<T>(
        &mut self,
        context: &mut Context<'_>,
        outcome: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if outcome.is_ready() || self.untiring.load(Ordering::Relaxed) {
            self.stalled = None;
            return outcome;
        }
        let until = Instant::now() + self.stall;
        let stalled = self
            .stalled
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until)));
        stalled.as_mut().poll(context).map(|()| {
            let words = "the client does not read what is sent to it";
            Err(io::Error::new(io::ErrorKind::TimedOut, words))
        })
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
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
        if outcome.is_pending() && this.first.as_mut().poll(context).is_ready() {
            let words = "the client says nothing";
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, words)));
        }
        outcome
    }
}

impl<S: AsyncRead + Unpin> Patient<S> {
    /// Reads on without listening until the other side has hung up, within bounds.
    fn linger(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let until = Instant::now() + limits::LINGER;
        let lingering = self
            .lingering
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until)));
        if lingering.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        let mut scrap = [0; 4096];
        while self.unwanted > 0 {
            let mut buffer = ReadBuf::new(&mut scrap);
            match Pin::new(&mut self.stream).poll_read(context, &mut buffer) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {
                    self.unwanted = self.unwanted.saturating_sub(buffer.filled().len());
                }
                Poll::Ready(_) => break,
            }
        }
        Poll::Ready(())
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let outcome = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.judge(context, outcome)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let outcome = Pin::new(&mut this.stream).poll_write_vectored(context, slices);
        this.judge(context, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let outcome = Pin::new(&mut this.stream).poll_flush(context);
        this.judge(context, outcome)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.lingering.is_none() {
            let outcome = Pin::new(&mut this.stream).poll_shutdown(context);
            match this.judge(context, outcome) {
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
        let mut patient = Patient::new(near, 0, FIRST, STALL);
        let started = Instant::now();
        let why = patient.write_all(&[0; 100]).await.unwrap_err();
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
        let mut patient = Patient::new(near, 0, FIRST, short);
        patient.untiring().store(true, Ordering::Relaxed);
        let writing = tokio::spawn(async move { patient.write_all(&[0; 16]).await });
        tokio::time::sleep(short * 20).await;
        far.read_exact(&mut [0; 16]).await.unwrap();
        writing.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_slow_reader_is_a_reader() {
        let (near, mut far) = duplex(8);
        let mut patient = Patient::new(near, 0, FIRST, STALL);
        let reading = tokio::spawn(async move {
            let mut sent = [0; 8];
            for _ in 0..20 {
                tokio::time::sleep(STALL / 10).await;
                far.read_exact(&mut sent).await.unwrap();
            }
        });
        patient.write_all(&[0; 160]).await.unwrap();
        reading.await.unwrap();
    }

    #[tokio::test]
    async fn what_a_client_still_sends_is_read_before_hanging_up() {
        let (near, mut far) = duplex(8);
        let mut patient = Patient::new(near, 0, FIRST, STALL);
        patient.write_all(b"refused").await.unwrap();
        let sending = tokio::spawn(async move {
            far.write_all(&vec![0; 100_000]).await.unwrap();
            let mut answer = Vec::new();
            far.read_to_end(&mut answer).await.unwrap();
            answer
        });
        patient.shutdown().await.unwrap();
        drop(patient);
        assert_eq!(sending.await.unwrap(), b"refused");
    }

    #[tokio::test]
    async fn a_client_that_never_hangs_up_is_left() {
        let (near, far) = duplex(8);
        let mut patient = Patient::new(near, 0, FIRST, STALL);
        let started = Instant::now();
        patient.shutdown().await.unwrap();
        assert!(started.elapsed() >= limits::LINGER);
        drop(far);
    }

    #[tokio::test]
    async fn a_client_that_says_nothing_is_given_up() {
        let (near, mut far) = duplex(64);
        let mut patient = Patient::new(near, 4, FIRST, STALL);
        far.write_all(b"abc").await.unwrap();
        let mut buffer = [0; 64];
        assert_eq!(patient.read(&mut buffer).await.unwrap(), 3);
        let why = patient.read(&mut buffer).await.unwrap_err();
        assert_eq!(why.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn after_its_first_words_a_client_may_be_silent() {
        let (near, mut far) = duplex(64);
        let mut patient = Patient::new(near, 4, FIRST, STALL);
        far.write_all(b"abcd").await.unwrap();
        let mut buffer = [0; 64];
        assert_eq!(patient.read(&mut buffer).await.unwrap(), 4);
        tokio::spawn(async move {
            tokio::time::sleep(FIRST * 2).await;
            far.write_all(b"e").await.unwrap();
        });
        assert_eq!(patient.read(&mut buffer).await.unwrap(), 1);
    }
}
