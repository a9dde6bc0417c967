//! `kennel why`: explains on which nodes a DaemonSet's pods run or are missing, and what would change that.
//!
//! ```text
//!   options ─▶ snapshot (lists of the API) ─▶ kennel_core::why (verdicts) ─▶ summary, detail (text) or JSON
//! ```
//!
//! It only reads. If it may not read something, it says so and explains the rest.

mod colour;
mod detail;
mod lists;
mod options;
mod snapshot;
mod summary;

use std::io::Write as _;

use anyhow::Context as _;
use kennel_core::why::{Answer, Snapshot};

use colour::Colours;
use options::Output;
pub(crate) use options::WhyArgs;

use crate::cluster;

/// Prints the explanation. Returns whether every node is as it should be.
pub(crate) async fn run(args: WhyArgs) -> anyhow::Result<bool> {
    let config =
        cluster::config_with_context(args.kubeconfig.as_deref(), args.context.as_deref()).await?;
    let namespace = args.namespace.clone();
    let namespace = namespace.unwrap_or_else(|| config.default_namespace.clone());
    let client = cluster::client_of(config)?;
    let name = &args.daemon_set.0;
    let snapshot = snapshot::read(&client, &namespace, name, args.node.as_deref()).await?;
    let answer = kennel_core::why::explain(&snapshot);
    let text = render(&args, &snapshot, &answer)?;
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        // As with `| head`; the exit code still tells the result.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
        written => written.context("cannot print the answer")?,
    }
    Ok(answer.ok)
}

fn render(args: &WhyArgs, snapshot: &Snapshot, answer: &Answer) -> anyhow::Result<String> {
    Ok(match args.output {
        Output::Json => serde_json::to_string_pretty(answer)? + "\n",
        Output::Text if args.node.is_some() => detail::text(snapshot, answer, Colours::of_stdout()),
        Output::Text => summary::text(snapshot, answer, args.all, Colours::of_stdout()),
    })
}
