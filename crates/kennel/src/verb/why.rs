//! `kennel why`: explains a DaemonSet's pods, node by node.

use std::process::ExitCode;

use crate::logging;
use crate::why::{self, WhyArgs};

/// Every node is as it should be.
const OK: u8 = 0;
/// Some node is not.
const PROBLEM: u8 = 1;
/// The cluster could not be read.
const UNKNOWN: u8 = 2;

pub(crate) async fn run(args: WhyArgs) -> ExitCode {
    match why::run(args).await {
        Ok(true) => OK.into(),
        Ok(false) => PROBLEM.into(),
        Err(error) => {
            logging::print_error(&error);
            UNKNOWN.into()
        }
    }
}
