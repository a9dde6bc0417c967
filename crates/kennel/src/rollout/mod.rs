//! `kennel rollout`: shows and directs the rollout of one DaemonSet of any cluster (R9.4).
//!
//! ```text
//!   options ─▶ inspect::snapshot ─▶ kennel_core::rollout (outline) ─▶ status, plan, history: text or JSON
//!                                                                  ─▶ command: a merge patch of annotations
//!   options ─▶ inspect::live ─▶ follow ─▶ watch (screen, lines), report (a file)
//! ```
//!
//! It writes annotations of the DaemonSet and nothing else; the controller acts on them. But `hand-over` looks at all
//! DaemonSets and removes conditions that no controller keeps any more.

mod command;
mod follow;
mod hand_over;
mod manifest;
mod options;
mod plan;
mod report;
mod status;
mod terminal;
mod watch;

use std::process::ExitCode;

use kennel_core::rollout::request::RolloutCommand;
use kennel_inspect::history;

use crate::inspect::{connect, print};
pub(crate) use options::RolloutArgs;
use options::{HistoryArgs, RolloutVerb};

/// It is done, or the rollout is complete.
const OK: u8 = 0;
/// A command that would do nothing.
const REFUSED: u8 = 1;

pub(crate) async fn run(args: RolloutArgs) -> anyhow::Result<ExitCode> {
    let (target, ask) = match args.verb {
        RolloutVerb::Status(args) => return status::run(&args).await,
        RolloutVerb::Watch(args) => return watch::run(&args).await,
        RolloutVerb::Report(args) => return report::run(&args).await,
        RolloutVerb::Plan(args) => return plan::run(&args).await,
        RolloutVerb::History(args) => return history(&args).await,
        RolloutVerb::HandOver(args) => return hand_over::run(&args).await,
        RolloutVerb::Promote(args) => (args.target, RolloutCommand::Promote { full: args.full }),
        RolloutVerb::Abort(target) => (target, RolloutCommand::Abort),
        RolloutVerb::Retry(target) => (target, RolloutCommand::Retry),
        RolloutVerb::Resume(target) => (target, RolloutCommand::Resume),
        RolloutVerb::Pause(args) => {
            let reason = args.reason;
            (args.target, RolloutCommand::Pause { reason })
        }
        RolloutVerb::Freeze(args) => {
            let reason = args.reason;
            (args.target, RolloutCommand::Freeze { reason })
        }
    };
    command::run(&target, &ask).await
}

async fn history(args: &HistoryArgs) -> anyhow::Result<ExitCode> {
    let (client, namespace) = connect(&args.target.cluster).await?;
    let name = &args.target.daemon_set.0;
    let history = history::read(&client, &namespace, name).await?.history();
    print(&args.output.render(&history, || history.text())?)?;
    Ok(OK.into())
}
