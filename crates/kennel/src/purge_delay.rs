//! How long the allocator keeps memory that was freed, for processes that must stay small. `embedded_agent` sets it for the
//! agent; `main` sets it for the dashboard by this module.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// In milliseconds. The allocator reads it before `main`.
pub(crate) const PURGE_DELAY: &str = "MIMALLOC_PURGE_DELAY";

/// Replaces this process by the same program with the same arguments, whose allocator returns freed memory at once. Its
/// process id, files and ignored signals stay. Returns if a delay is set, which it is the second time, or on failure.
pub(crate) fn exec_without_delay() {
    if env::var_os(PURGE_DELAY).is_some() {
        return;
    }
    let error = match env::current_exe() {
        Ok(program) => exec(program.as_os_str()),
        Err(error) => error,
    };
    tracing::debug!(%error, "freed memory is returned later: cannot execute this program again");
}

/// Returns only on failure.
fn exec(program: &OsStr) -> io::Error {
    let mut arguments = env::args_os();
    let mut command = Command::new(program);
    command.arg0(arguments.next().unwrap_or_else(|| "kennel".into()));
    command.args(arguments).env(PURGE_DELAY, "0").exec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_gone_leaves_this_process_as_it_is() {
        let error = exec(OsStr::new("/nowhere/kennel (deleted)"));
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
