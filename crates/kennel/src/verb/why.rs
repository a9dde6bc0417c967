//! `kennel why`: explains a DaemonSet's pods, node by node.

use std::process::ExitCode;

use crate::logging;
use crate::why::{self, WhyArgs};

/// Every node is as it should be.
const OK: u8 = 0;
/// Some node is not, or a typo leaves a DaemonSet without nodes.
const PROBLEM: u8 = 1;
/// The command line is invalid, something that it names does not exist, or the cluster could not be read.
const UNKNOWN: u8 = 2;

pub(crate) async fn run(args: WhyArgs) -> ExitCode {
    let (ok, errors) = match why::run(args).await {
        Ok(outcome) => (outcome.ok, outcome.errors),
        Err(error) => (false, vec![error]),
    };
    for error in &errors {
        logging::print_error(error);
    }
    let code = match (errors.is_empty(), ok) {
        (false, _) => UNKNOWN,
        (true, false) => PROBLEM,
        (true, true) => OK,
    };
    code.into()
}
