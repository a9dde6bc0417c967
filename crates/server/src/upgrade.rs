//! HTTP upgrades: a connection that switches protocols and is relayed to a backend, byte for byte, until one
//! side closes or the server stops.

mod frame;
pub mod fuzz;

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::BoxFuture;
use http::Request;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::frame::FrameBoundaries;
use crate::fairness::Seat;
use crate::limits;

/// Resolves when the certificate that authenticated an open request is no longer valid.
pub(crate) type Invalidation = BoxFuture<'static, ()>;

/// The buffer of one direction, as large as that of `tokio::io::copy`.
const COPY_BYTES: usize = 8 * 1024;

/// The upgrade that a request asks for.
pub(crate) struct Upgrade {
    pending: OnUpgrade,
    /// Turns the connection's write timeout off: the user of a terminal may pause its output.
    may_stall: Arc<AtomicBool>,
    /// The connection waits for these tasks, so that it keeps its own seat as long.
    tasks: TaskTracker,
    /// Released when the session ends.
    seat: Option<Seat>,
    /// Ends the session.
    invalidation: Option<Invalidation>,
}

impl Upgrade {
    /// The upgrade of a request, if its protocol allows one.
    pub(crate) fn of<B>(
        request: &mut Request<B>,
        may_stall: &Arc<AtomicBool>,
        tasks: &TaskTracker,
    ) -> Option<Box<Self>> {
        let pending = request.extensions_mut().remove::<OnUpgrade>()?;
        Some(Box::new(Self {
            pending,
            may_stall: Arc::clone(may_stall),
            tasks: tasks.clone(),
            seat: None,
            invalidation: None,
        }))
    }

    /// Holds this seat until the session ends, which the invalidation does.
    pub(crate) fn hold(&mut self, seat: Option<Seat>, invalidation: Option<Invalidation>) {
        (self.seat, self.invalidation) = (seat, invalidation);
    }

    /// Relays between the client and the backend, once the answer (101) has been sent. `is_websocket` says which protocol the
    /// backend speaks.
    pub(crate) fn connect<F>(self, backend: F, is_websocket: bool, ending: CancellationToken)
    where
        F: AsyncRead + AsyncWrite + Send + 'static,
    {
        let Self {
            pending,
            may_stall,
            tasks,
            seat,
            invalidation,
        } = self;
        tasks.spawn(async move {
            let client = tokio::select! {
                client = pending => client,
                () = ending.cancelled() => return,
            };
            match client {
                Ok(client) => {
                    may_stall.store(true, Ordering::Relaxed);
                    let session = ending.child_token();
                    let relaying =
                        relay(TokioIo::new(client), backend, is_websocket, session.clone());
                    tokio::select! {
                        () = relaying => {}
                        () = cut(invalidation, &session) => {}
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, "the client closed the connection before the upgrade");
                }
            }
            drop(seat);
        });
    }
}

/// Cancels the session when its client certificate is no longer valid, and gives it [`limits::DRAIN`] to close.
async fn cut(invalidation: Option<Invalidation>, session: &CancellationToken) {
    let Some(invalidation) = invalidation else {
        return std::future::pending().await;
    };
    invalidation.await;
    session.cancel();
    tokio::time::sleep(limits::DRAIN).await;
}

/// Copies in both directions. Ends when the backend closes or the server stops; when the client closes, the
/// backend gets [`limits::DRAIN`] to send the rest.
async fn relay<N, F>(client: N, backend: F, is_websocket: bool, ending: CancellationToken)
where
    N: AsyncRead + AsyncWrite,
    F: AsyncRead + AsyncWrite,
{
    let (mut client_read, mut client_write) = tokio::io::split(client);
    let (mut backend_read, mut backend_write) = tokio::io::split(backend);
    let up = async {
        let copied = tokio::select! {
            copied = tokio::io::copy(&mut client_read, &mut backend_write) => copied.map(drop),
            () = ending.cancelled() => Ok(()),
        };
        copied.and(backend_write.shutdown().await)
    };
    let down = async {
        let copy = async {
            if is_websocket {
                copy_frames(&mut backend_read, &mut client_write).await
            } else {
                let copied = tokio::io::copy(&mut backend_read, &mut client_write).await;
                copied.map(drop)
            }
        };
        let copied = tokio::select! {
            copied = copy => copied,
            () = ending.cancelled() => Ok(()),
        };
        copied.and(client_write.shutdown().await)
    };
    let (mut up, mut down) = (pin!(up), pin!(down));
    let ended = tokio::select! {
        ended = down.as_mut() => ended,
        ended = up.as_mut() => {
            let last = tokio::time::timeout(limits::DRAIN, down).await;
            ended.and(last.unwrap_or(Ok(())))
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "an upgraded session ended with an error");
    }
}

/// Copies frame by frame, each in a TLS record of its own. The Python client of Kubernetes polls the socket after each frame,
/// and would not see a second one that the TLS library has read already.
async fn copy_frames<R, W>(from: &mut R, to: &mut W) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut frames = FrameBoundaries::default();
    let mut buffer = vec![0; COPY_BYTES];
    loop {
        let length = from.read(&mut buffer).await?;
        if length == 0 {
            return Ok(());
        }
        let mut rest = &buffer[..length];
        while !rest.is_empty() {
            let (frame, more) = rest.split_at(frames.advance(rest));
            to.write_all(frame).await?;
            rest = more;
        }
        to.flush().await?;
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use tokio::io::duplex;

    use super::*;

    #[tokio::test]
    async fn bytes_are_relayed_until_the_backend_closes() {
        let ((mut client, server_end), (backend, mut agent)) = (duplex(64), duplex(64));
        let relaying = tokio::spawn(relay(server_end, backend, false, CancellationToken::new()));
        client.write_all(b"ls").await.unwrap();
        let mut received = [0; 2];
        agent.read_exact(&mut received).await.unwrap();
        assert_eq!(&received, b"ls");
        agent.write_all(b"a file").await.unwrap();
        drop(agent);
        let mut output = String::new();
        client.read_to_string(&mut output).await.unwrap();
        assert_eq!(output, "a file");
        relaying.await.unwrap();
    }

    #[tokio::test]
    async fn output_after_the_client_has_closed_still_arrives() {
        let ((mut client, server_end), (backend, mut agent)) = (duplex(64), duplex(64));
        let relaying = tokio::spawn(relay(server_end, backend, false, CancellationToken::new()));
        client.shutdown().await.unwrap();
        let mut received = Vec::new();
        agent.read_to_end(&mut received).await.unwrap();
        agent.write_all(b"exit 3").await.unwrap();
        drop(agent);
        let mut output = String::new();
        client.read_to_string(&mut output).await.unwrap();
        assert_eq!(output, "exit 3");
        relaying.await.unwrap();
    }

    #[tokio::test]
    async fn a_stopping_server_ends_a_silent_session() {
        let ((client, server_end), (backend, _agent)) = (duplex(64), duplex(64));
        drop(client);
        let ending = CancellationToken::new();
        let mut relaying = Box::pin(relay(server_end, backend, false, ending.clone()));
        assert!(futures_util::poll!(relaying.as_mut()).is_pending());
        ending.cancel();
        relaying.await;
    }

    /// Counts the bytes of each write.
    #[derive(Default)]
    struct Writes(Vec<usize>);

    impl AsyncWrite for Writes {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.0.push(bytes.len());
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn each_frame_is_written_by_itself() {
        // Two messages of three bytes and a close message, read at once.
        let mut frames: &[u8] = b"\x82\x03\x01ab\x82\x03\x02cd\x88\x00";
        let mut writes = Writes::default();
        copy_frames(&mut frames, &mut writes).await.unwrap();
        assert_eq!(writes.0, [5, 5, 2]);
    }
}
