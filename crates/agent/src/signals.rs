//! SIGTERM and SIGINT stop a program.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::notify;

/// Runs `work` until it ends, or cancels its token at a signal and waits for it to end.
pub async fn run_until_signal<F>(work: impl FnOnce(CancellationToken) -> F) -> anyhow::Result<()>
where
    F: Future<Output = anyhow::Result<()>>,
{
    let mut signals = Signals::listen()?;
    let stop = CancellationToken::new();
    let mut work = std::pin::pin!(work(stop.clone()));
    tokio::select! {
        ended = &mut work => return ended,
        () = signals.received() => {}
    }
    tracing::info!("stopping");
    stop.cancel();
    work.await
}

/// SIGTERM and SIGINT since [`Self::listen`].
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// From here on, these signals do not end the process by themselves.
    pub fn listen() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for a signal, and notifies the service manager of it.
    pub async fn received(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
        notify::stopping();
    }
}
