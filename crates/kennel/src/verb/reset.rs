//! `kennel reset` and `kennel agent --cleanup`.

use std::process::ExitCode;

use kennel_agent::args::AgentArgs;

use crate::logging;
use crate::reset::{self, Outcome, ResetArgs};

/// Something is left, or the user said no.
const LEFT: u8 = 1;
/// Nothing was changed: it may not be reset now, or nobody could be asked.
const REFUSED: u8 = 2;

pub(crate) async fn run(args: ResetArgs) -> ExitCode {
    exit_code(reset::run(args).await)
}

pub(crate) async fn run_agent(args: AgentArgs) -> ExitCode {
    exit_code(reset::run_agent(args).await)
}

fn exit_code(outcome: anyhow::Result<Outcome>) -> ExitCode {
    match outcome {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Left) => LEFT.into(),
        Err(error) => {
            logging::print_error(&error);
            REFUSED.into()
        }
    }
}
