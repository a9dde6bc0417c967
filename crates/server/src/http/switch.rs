//! A connection that stops speaking HTTP: its client and somebody else get each other's bytes, unread and
//! unchanged, until one of them has had enough or the server stops. Who the other one is, and whether the
//! client may speak to it, is decided elsewhere.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::Request;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::flight::Seat;
use super::limits;

/// The way out of HTTP, for a request that asks for one.
pub(crate) struct Switch {
    upgrade: OnUpgrade,
    /// Set, the connection no longer minds a client that does not read for a while: it has a terminal, and
    /// somebody who stopped its output.
    untiring: Arc<AtomicBool>,
    /// What the connection waits for before it ends, so that its place is taken as long.
    tasks: TaskTracker,
    /// What is given back at the end.
    seat: Option<Seat>,
}

impl Switch {
    /// Takes the way out of a request, if it offers one.
    pub(super) fn of<B>(
        request: &mut Request<B>,
        untiring: &Arc<AtomicBool>,
        tasks: &TaskTracker,
    ) -> Option<Box<Self>> {
        let upgrade = request.extensions_mut().remove::<OnUpgrade>()?;
        Some(Box::new(Self {
            upgrade,
            untiring: Arc::clone(untiring),
            tasks: tasks.clone(),
            seat: None,
        }))
    }

    /// Holds this seat until the end.
    pub(super) fn hold(&mut self, seat: Option<Seat>) {
        self.seat = seat;
    }

    /// Connects the client with somebody else, once the answer (101) has been sent.
    pub(crate) fn connect<F>(self, far: F, ending: CancellationToken)
    where
        F: AsyncRead + AsyncWrite + Send + 'static,
    {
        let Self {
            upgrade,
            untiring,
            tasks,
            seat,
        } = self;
        tasks.spawn(async move {
            let near = tokio::select! {
                near = upgrade => near,
                () = ending.cancelled() => return,
            };
            match near {
                Ok(near) => {
                    untiring.store(true, Ordering::Relaxed);
                    relay(TokioIo::new(near), far, ending).await;
                }
                Err(error) => {
                    tracing::debug!(%error, "the client left before it could be connected");
                }
            }
            drop(seat);
        });
    }
}

/// Copies both ways. When the far side or the server is done, so is all; when the client is, the far side gets a
/// moment to say its last.
async fn relay<N, F>(near: N, far: F, ending: CancellationToken)
where
    N: AsyncRead + AsyncWrite,
    F: AsyncRead + AsyncWrite,
{
    let (mut near_read, mut near_write) = tokio::io::split(near);
    let (mut far_read, mut far_write) = tokio::io::split(far);
    let up = async {
        let copied = tokio::io::copy(&mut near_read, &mut far_write).await;
        copied.and(far_write.shutdown().await)
    };
    let down = async {
        let copied = tokio::select! {
            copied = tokio::io::copy(&mut far_read, &mut near_write) => copied,
            () = ending.cancelled() => Ok(0),
        };
        copied.and(near_write.shutdown().await)
    };
    let (mut up, mut down) = (pin!(up), pin!(down));
    let ended = tokio::select! {
        ended = down.as_mut() => ended,
        ended = up.as_mut() => {
            let last = tokio::time::timeout(limits::LAST_WORDS, down).await;
            ended.and(last.unwrap_or(Ok(())))
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a session ended");
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, duplex};

    use super::*;

    #[tokio::test]
    async fn bytes_go_both_ways_and_the_far_end_ends_it() {
        let ((mut client, near), (far, mut agent)) = (duplex(64), duplex(64));
        let relaying = tokio::spawn(relay(near, far, CancellationToken::new()));
        client.write_all(b"ls").await.unwrap();
        let mut heard = [0; 2];
        agent.read_exact(&mut heard).await.unwrap();
        assert_eq!(&heard, b"ls");
        agent.write_all(b"a file").await.unwrap();
        drop(agent);
        let mut said = String::new();
        client.read_to_string(&mut said).await.unwrap();
        assert_eq!(said, "a file");
        relaying.await.unwrap();
    }

    #[tokio::test]
    async fn what_is_said_after_the_client_is_done_still_arrives() {
        let ((mut client, near), (far, mut agent)) = (duplex(64), duplex(64));
        let relaying = tokio::spawn(relay(near, far, CancellationToken::new()));
        client.shutdown().await.unwrap();
        let mut heard = Vec::new();
        agent.read_to_end(&mut heard).await.unwrap();
        agent.write_all(b"exit 3").await.unwrap();
        drop(agent);
        let mut said = String::new();
        client.read_to_string(&mut said).await.unwrap();
        assert_eq!(said, "exit 3");
        relaying.await.unwrap();
    }

    #[tokio::test]
    async fn a_far_end_that_does_not_notice_is_left_when_the_server_stops() {
        let ((client, near), (far, _agent)) = (duplex(64), duplex(64));
        drop(client);
        let ending = CancellationToken::new();
        let mut relaying = Box::pin(relay(near, far, ending.clone()));
        assert!(futures_util::poll!(relaying.as_mut()).is_pending());
        ending.cancel();
        relaying.await;
    }
}
