//! The signals that ask a server to stop.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::notify;

/// Does this work until it ends, or until a signal asks us to stop; then the work is told, and finishes
/// what it has begun.
pub async fn until_told<F>(work: impl FnOnce(CancellationToken) -> F) -> anyhow::Result<()>
where
    F: Future<Output = anyhow::Result<()>>,
{
    let mut signals = Signals::listen()?;
    let stop = CancellationToken::new();
    let mut working = std::pin::pin!(work(stop.clone()));
    tokio::select! {
        ended = &mut working => return ended,
        () = signals.stop() => {}
    }
    tracing::info!("stopping");
    stop.cancel();
    working.await
}

/// SIGTERM and Ctrl-C, heard from the moment this is made.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Begins to listen. From here on, these signals no longer end the process by themselves.
    pub fn listen() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for one of them, and lets a service manager know that it was heard.
    pub async fn stop(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
        notify::stopping();
    }
}
