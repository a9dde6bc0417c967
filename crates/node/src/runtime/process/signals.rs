//! Parses the stop signal of a container.

use rustix::process::Signal;

use crate::runtime::{Error, Result, signals};

/// SIGTERM for an empty name.
pub(super) fn parse(name: &str) -> Result<Signal> {
    if name.is_empty() {
        return Ok(Signal::TERM);
    }
    // Real-time signals have no safe wrapper.
    let number = signals::number(name).and_then(|number| i32::try_from(number).ok());
    let found = number.and_then(Signal::from_named_raw);
    let unknown = || {
        Error::Refused(format!(
            "the process runtime does not know the stop signal {name:?}"
        ))
    };
    found.ok_or_else(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_signals_are_parsed() {
        assert_eq!(parse(""), Ok(Signal::TERM));
        assert_eq!(parse("SIGUSR1"), Ok(Signal::USR1));
        assert!(parse("SIGRTMIN+3").is_err());
    }
}
