//! `kennel why`: asks a cluster, and prints what was found out.

use std::process::ExitCode;

use crate::logging;
use crate::why::{self, WhyArgs};

/// All is as it should be.
const GOOD: u8 = 0;
/// Something is not.
const BAD: u8 = 1;
/// It could not be found out.
const UNKNOWN: u8 = 2;

/// Answers. The exit code tells scripts.
pub(crate) async fn run(args: WhyArgs) -> ExitCode {
    match why::run(args).await {
        Ok(true) => GOOD.into(),
        Ok(false) => BAD.into(),
        Err(error) => {
            logging::complain(&error);
            UNKNOWN.into()
        }
    }
}
