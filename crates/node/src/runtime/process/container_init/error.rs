//! Errors of starting a container or a command in it. Users see their texts in container statuses.

use std::error::Error as _;
use std::io;
use std::path::PathBuf;

pub(super) type Result<T = ()> = std::result::Result<T, InitError>;

/// See the [module](self).
#[derive(Debug, thiserror::Error)]
pub(super) enum InitError {
    #[error("{step}")]
    Step { step: String, source: io::Error },
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(
        "overlay of /: {0}; the agent's data directory must be on a disk of the machine's, not on an overlay"
    )]
    RootOverlay(rustix::io::Errno),
    #[error("{}: too many links", .0.display())]
    TooManyLinks(PathBuf),
    #[error("a mount point is not UTF-8")]
    MountPointNotUtf8,
    #[error(transparent)]
    Nul(#[from] std::ffi::NulError),
    #[error("no container specified")]
    NoContainer,
    #[error("the container is not running")]
    NotRunning,
    #[error("the container has ended")]
    Exited,
    #[error("/proc does not know this process")]
    NotInProc,
    #[error("no command specified")]
    NoCommand,
    #[error("exec: {0:?}: stat {0}: no such file or directory")]
    NoSuchFile(String),
    #[error("exec: {0:?}: executable file not found in $PATH")]
    NotInPath(String),
    #[error("exec: {0:?}: permission denied")]
    PermissionDenied(String),
    #[error("exec: {program:?}")]
    Exec { program: String, source: io::Error },
}

impl InitError {
    pub(super) fn exec(program: String, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound if program.contains('/') => Self::NoSuchFile(program),
            io::ErrorKind::NotFound => Self::NotInPath(program),
            io::ErrorKind::PermissionDenied => Self::PermissionDenied(program),
            _ => Self::Exec {
                program,
                source: error,
            },
        }
    }

    /// The error and its cause, on one line.
    pub(super) fn message(&self) -> String {
        match self.source() {
            Some(source) => format!("{self}: {source}"),
            None => self.to_string(),
        }
    }
}

/// For `map_err`: names the step that failed.
pub(super) fn failed<E: Into<io::Error>>(step: &str) -> impl Fn(E) -> InitError {
    move |error| InitError::Step {
        step: step.to_owned(),
        source: error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_step_and_the_cause() {
        let error = failed("cgroup")(io::Error::from_raw_os_error(1));
        let cause = io::Error::from_raw_os_error(1);
        assert_eq!(error.message(), format!("cgroup: {cause}"));
        let missing = io::Error::from(io::ErrorKind::NotFound);
        let error = InitError::exec("app".to_owned(), missing);
        let expected = "exec: \"app\": executable file not found in $PATH";
        assert_eq!(error.message(), expected);
    }
}
