//! `kennel bench`: what a cluster takes for a DaemonSet on many nodes.

use std::io::Write as _;

use tokio_util::sync::CancellationToken;

use crate::bench::{self, BenchArgs};
use crate::cluster;
use crate::signals::Signals;

/// Measures and prints. Told to stop, it cleans up first; told again, it ends.
pub(crate) async fn run(args: BenchArgs) -> anyhow::Result<()> {
    let mut signals = Signals::listen()?;
    let client = cluster::client(args.kubeconfig.as_deref()).await?;
    let stop = CancellationToken::new();
    let mut measuring = std::pin::pin!(bench::run(client, args, stop.clone()));
    let figures = tokio::select! {
        figures = &mut measuring => figures?,
        () = signals.stop() => {
            stop.cancel();
            tokio::select! {
                figures = &mut measuring => figures?,
                () = signals.stop() => anyhow::bail!("stopped before everything was removed"),
            }
        }
    };
    std::io::stdout().lock().write_all(figures.as_bytes())?;
    Ok(())
}
