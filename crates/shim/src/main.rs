//! `kennel-shim`: see the library. Only the agent starts it.

use std::process::ExitCode;

fn main() -> ExitCode {
    kennel_shim::run(std::env::args_os().skip(1).collect())
}
