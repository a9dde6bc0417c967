//! `kennel bench`: benchmarks a cluster.

use std::io::Write as _;

use tokio_util::sync::CancellationToken;

use crate::bench::{self, BenchArgs};
use crate::cluster;
use crate::signals::Signals;

/// Measures and prints. The first signal stops the benchmark and cleans up; a second one skips the cleanup.
pub(crate) async fn run(args: BenchArgs) -> anyhow::Result<()> {
    let mut signals = Signals::listen()?;
    let config = cluster::config(args.kubeconfig.as_deref()).await?;
    let stop = CancellationToken::new();
    let mut benchmark = std::pin::pin!(bench::run(config, args, stop.clone()));
    let report = tokio::select! {
        report = &mut benchmark => report?,
        () = signals.received() => {
            stop.cancel();
            tokio::select! {
                report = &mut benchmark => report?,
                () = signals.received() => anyhow::bail!("stopped before the cleanup was complete; `kennel bench --clean` removes the rest"),
            }
        }
    };
    std::io::stdout().lock().write_all(report.as_bytes())?;
    Ok(())
}
