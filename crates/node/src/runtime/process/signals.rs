//! Signals by name.

use rustix::process::Signal;

use crate::runtime::{Error, Result};

const NAMES: [(&str, Signal); 20] = [
    ("SIGABRT", Signal::ABORT),
    ("SIGALRM", Signal::ALARM),
    ("SIGCHLD", Signal::CHILD),
    ("SIGCONT", Signal::CONT),
    ("SIGHUP", Signal::HUP),
    ("SIGINT", Signal::INT),
    ("SIGIO", Signal::IO),
    ("SIGKILL", Signal::KILL),
    ("SIGPIPE", Signal::PIPE),
    ("SIGPOLL", Signal::IO),
    ("SIGPROF", Signal::PROF),
    ("SIGQUIT", Signal::QUIT),
    ("SIGSTOP", Signal::STOP),
    ("SIGTERM", Signal::TERM),
    ("SIGTSTP", Signal::TSTP),
    ("SIGURG", Signal::URG),
    ("SIGUSR1", Signal::USR1),
    ("SIGUSR2", Signal::USR2),
    ("SIGVTALRM", Signal::VTALARM),
    ("SIGWINCH", Signal::WINCH),
];

/// The one that asks a container to end.
pub(super) fn parse(name: &str) -> Result<Signal> {
    if name.is_empty() {
        return Ok(Signal::TERM);
    }
    let found = NAMES.iter().find(|(known, _)| *known == name);
    let unknown = || {
        Error::Refused(format!(
            "the process runtime does not know the stop signal {name:?}"
        ))
    };
    found.map(|(_, signal)| *signal).ok_or_else(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_names() {
        assert_eq!(parse(""), Ok(Signal::TERM));
        assert_eq!(parse("SIGUSR1"), Ok(Signal::USR1));
        assert!(parse("SIGRTMIN+3").is_err());
    }
}
