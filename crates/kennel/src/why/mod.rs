//! `kennel why`: explains on which nodes a DaemonSet's pods run or are missing, and what would change that.
//!
//! ```text
//!   options ─▶ snapshot (lists of the API) ─▶ kennel_core::why (verdicts) ─▶ summary, detail (text) or JSON
//! ```
//!
//! It only reads. If it may not read something, it says so and explains the rest.

mod detail;
mod options;
mod summary;

use kennel_core::why::{Answer, Snapshot};

use crate::inspect::colour::Colours;
use crate::inspect::options::Output;
use crate::inspect::{connect, print, snapshot};
pub(crate) use options::WhyArgs;

/// Prints the explanation. Returns whether every node is as it should be.
pub(crate) async fn run(args: WhyArgs) -> anyhow::Result<bool> {
    let (client, namespace) = connect(&args.cluster).await?;
    let name = &args.daemon_set.0;
    let snapshot = snapshot::read(&client, &namespace, name, args.node.as_deref()).await?;
    let answer = kennel_core::why::explain(&snapshot);
    print(&render(&args, &snapshot, &answer)?)?;
    Ok(answer.ok)
}

fn render(args: &WhyArgs, snapshot: &Snapshot, answer: &Answer) -> anyhow::Result<String> {
    Ok(match args.output {
        Output::Json => serde_json::to_string_pretty(answer)? + "\n",
        Output::Text if args.node.is_some() => detail::text(snapshot, answer, Colours::of_stdout()),
        Output::Text => summary::text(snapshot, answer, args.all, Colours::of_stdout()),
    })
}
