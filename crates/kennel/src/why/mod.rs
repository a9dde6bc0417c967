//! `kennel why`: what is wrong where with a DaemonSet, and what would help.
//!
//! ```text
//!   options ─▶ gather (lists of the API) ─▶ kennel_core::why (verdicts) ─▶ print, detail (text) or JSON
//! ```
//!
//! It only reads. What it may not read it says, and answers the rest.

mod detail;
mod gather;
mod options;
mod page;
mod paint;
mod print;

use std::io::Write as _;

use anyhow::Context as _;
use kennel_core::why::{Answer, Snapshot};

use options::Output;
pub(crate) use options::WhyArgs;
use paint::Paint;

use crate::cluster;

/// Asks, judges and prints. True if all is as it should be.
pub(crate) async fn run(args: WhyArgs) -> anyhow::Result<bool> {
    let config = cluster::config_of(args.kubeconfig.as_deref(), args.context.as_deref()).await?;
    let namespace = args.namespace.clone();
    let namespace = namespace.unwrap_or_else(|| config.default_namespace.clone());
    let client = cluster::of(config)?;
    let name = &args.daemon_set.0;
    let snapshot = gather::snapshot(&client, &namespace, name, args.node.as_deref()).await?;
    let answer = kennel_core::why::explain(&snapshot);
    let text = shown(&args, &snapshot, &answer)?;
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        // Whoever reads has read enough; the exit code still tells.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
        written => written.context("the answer cannot be printed")?,
    }
    Ok(answer.ok)
}

fn shown(args: &WhyArgs, snapshot: &Snapshot, answer: &Answer) -> anyhow::Result<String> {
    Ok(match args.output {
        Output::Json => serde_json::to_string_pretty(answer)? + "\n",
        Output::Text if args.node.is_some() => detail::text(snapshot, answer, Paint::of_stdout()),
        Output::Text => print::text(snapshot, answer, args.all, Paint::of_stdout()),
    })
}
