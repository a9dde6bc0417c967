//! `kennel-shim`: see the library. Started by the agent, never by people.

use std::process::ExitCode;

fn main() -> ExitCode {
    kennel_shim::keep(std::env::args_os().skip(1).collect())
}
