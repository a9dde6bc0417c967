//! Other programs, run to their end.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// What it wrote. If it fails, or is not there, the error says what was run and what it said.
pub(crate) fn run(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output();
    let output = output.with_context(|| format!("{program} cannot be run; is it installed?"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} failed: {said}");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Seconds since 1970 that stand in packages as the time of everything: `SOURCE_DATE_EPOCH`, or the time of
/// the last commit here, or 0.
pub(crate) fn epoch() -> u64 {
    let given = std::env::var("SOURCE_DATE_EPOCH").ok();
    let committed = || run(Command::new("git").args(["log", "-1", "--format=%ct"])).ok();
    let text = given.or_else(committed).unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}
