//! `kennel shim`: the short-lived processes that become a container's command, or a command in a container.
//! In the agent's own binary, entered before anything else of it; people never call it.
//!
//! ```text
//!   agent ─▶ kennel-shim ─▶ shim run ═▶ the container's command    ═▶: becomes
//!   agent ─▶ shim exec ─▶ shim enter ═▶ a command in a container
//! ```
//!
//! Namespaces, users and rights are changed here and nowhere else: each of these processes has one thread
//! and nothing to lose. What runs on is the command alone.

mod covers;
mod enter;
mod mounts;
mod run;
mod security;
mod table;
mod users;

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use super::spec::Spec;

/// Runs what was asked for; `args` are those after `shim`.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut args = args.into_iter();
    let verb = args.next().unwrap_or_default();
    let rest: Vec<OsString> = args.collect();
    match verb.to_str() {
        Some("run") => run::main(),
        Some("exec") => enter::relay(&rest),
        Some("enter") => enter::main(&rest),
        _ => ExitCode::from(2),
    }
}

/// Becomes a command. Comes back only if that fails.
fn become_command(command: &[OsString], spec: &Spec) -> String {
    let Some((program, args)) = command.split_first() else {
        return "no command specified".to_owned();
    };
    // Looked up in the container's own files, as everywhere.
    let user = spec
        .user
        .unwrap_or_else(|| rustix::process::getuid().as_raw());
    let home = users::find(user).map_or_else(|| "/".to_owned(), |user| user.home);
    let error = Command::new(program)
        .args(args)
        .env_clear()
        .env("HOME", home)
        .envs(spec.env.iter().map(|(name, value)| (name, value)))
        .exec();
    let program = program.to_string_lossy();
    match error.kind() {
        io::ErrorKind::NotFound if program.contains('/') => {
            format!("exec: {program:?}: stat {program}: no such file or directory")
        }
        io::ErrorKind::NotFound => format!("exec: {program:?}: executable file not found in $PATH"),
        io::ErrorKind::PermissionDenied => format!("exec: {program:?}: permission denied"),
        _ => format!("exec: {program:?}: {error}"),
    }
}

/// What failed, with its error.
fn failed(what: &str) -> impl Fn(io::Error) -> String {
    move |error| format!("{what}: {error}")
}
