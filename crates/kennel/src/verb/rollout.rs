//! `kennel rollout`: shows and directs the rollout of a DaemonSet.

use std::process::ExitCode;

use crate::logging;
use crate::rollout::{self, RolloutArgs};

/// The cluster could not be read or written.
const UNKNOWN: u8 = 2;

pub(crate) async fn run(args: RolloutArgs) -> ExitCode {
    match rollout::run(args).await {
        Ok(code) => code,
        Err(error) => {
            logging::print_error(&error);
            UNKNOWN.into()
        }
    }
}
