//! Runs other programs, and the time stamp of reproducible packages.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// Returns stdout. If the program fails, the error has its command line and stderr.
pub(crate) fn run(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output();
    let output = output.with_context(|| format!("cannot run {program}; is it installed?"))?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} failed: {stderr}");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The modification time of all files, in seconds since 1970: `SOURCE_DATE_EPOCH`, the time of the last commit, or 0.
pub(crate) fn source_date_epoch() -> u64 {
    let variable = std::env::var("SOURCE_DATE_EPOCH").ok();
    let last_commit = || run(Command::new("git").args(["log", "-1", "--format=%ct"])).ok();
    let text = variable.or_else(last_commit).unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}
