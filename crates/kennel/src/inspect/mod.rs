//! What the verbs that look at one DaemonSet of any cluster share (`kennel why`, `kennel rollout`) on the command line: flags,
//! the connection, printing. What they read and explain is in `kennel_inspect`.

pub(crate) mod options;

use std::io::Write as _;

use anyhow::Context as _;
use kube::Client;

use crate::cluster;
use options::ClusterArgs;

/// A client of the cluster, and the namespace to look in.
pub(crate) async fn connect(args: &ClusterArgs) -> anyhow::Result<(Client, String)> {
    let config =
        cluster::config_with_context(args.kubeconfig.as_deref(), args.context.as_deref()).await?;
    let namespace = args.namespace.clone();
    let namespace = namespace.unwrap_or_else(|| config.default_namespace.clone());
    Ok((cluster::client_of(config)?, namespace))
}

/// Prints an answer to stdout.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        // As with `| head`; the exit code still tells the result.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot print the answer"),
    }
}
