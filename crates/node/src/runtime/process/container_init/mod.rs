//! `kennel shim`: the short-lived processes that set up a container and execute its command, or execute a command in a
//! running container. Part of the agent's own binary; only the agent and the shim start them.
//!
//! ```text
//!   agent ─▶ kennel-shim ─▶ shim run ══exec══▶ the container's command
//!   agent ─▶ shim exec ─▶ shim enter ══exec══▶ a command in a container
//! ```
//!
//! Namespaces, users and capabilities are changed only here, in processes with a single thread that execute another
//! program afterwards.

mod devices;
mod enter;
mod error;
mod mount_points;
mod mounts;
mod passwd;
mod run;
mod security;

use std::convert::Infallible;
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use self::error::{InitError, Result, failed};
use super::spec::Spec;

/// Runs a subcommand; `args` are those after `shim`.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut args = args.into_iter();
    let subcommand = args.next().unwrap_or_default();
    let rest: Vec<OsString> = args.collect();
    match subcommand.to_str() {
        Some("run") => run::main(),
        Some("exec") => enter::exec(&rest),
        Some("enter") => enter::enter(&rest),
        _ => ExitCode::from(2),
    }
}

/// Replaces this process by a command.
fn execute(command: &[OsString], spec: &Spec) -> Result<Infallible> {
    let (program, args) = command.split_first().ok_or(InitError::NoCommand)?;
    let user = spec
        .user
        .unwrap_or_else(|| rustix::process::getuid().as_raw());
    let home = passwd::find(user).map_or_else(|| "/".to_owned(), |user| user.home);
    let error = Command::new(program)
        .args(args)
        .env_clear()
        .env("HOME", home)
        .envs(spec.env.iter().map(|(name, value)| (name, value)))
        .exec();
    let program = program.to_string_lossy().into_owned();
    Err(InitError::exec(program, error))
}
