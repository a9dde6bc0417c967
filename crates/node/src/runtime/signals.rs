//! Linux signals by name, for `lifecycle.stopSignal`.

/// By number, from 1; the same on all machines we run on.
const NAMES: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2",
    "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG",
    "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
];
const ALIASES: [(&str, &str); 3] = [("IOT", "ABRT"), ("CLD", "CHLD"), ("POLL", "IO")];
/// Real-time signals that C libraries do not use themselves.
const FIRST_REAL_TIME: u32 = 34;
const LAST_REAL_TIME: u32 = 64;

/// `SIGTERM` is 15.
pub(super) fn number(name: &str) -> Option<u32> {
    let name = name.strip_prefix("SIG")?;
    let alias = ALIASES.iter().find(|(alias, _)| *alias == name);
    let name = alias.map_or(name, |(_, name)| name);
    if let Some(rest) = name.strip_prefix("RTMIN") {
        let number = FIRST_REAL_TIME.checked_add(offset(rest, "+")?)?;
        return (number <= LAST_REAL_TIME).then_some(number);
    }
    if let Some(rest) = name.strip_prefix("RTMAX") {
        let number = LAST_REAL_TIME.checked_sub(offset(rest, "-")?)?;
        return (number >= FIRST_REAL_TIME).then_some(number);
    }
    (1..)
        .zip(NAMES)
        .find_map(|(number, known)| (known == name).then_some(number))
}

fn offset(text: &str, sign: &str) -> Option<u32> {
    if text.is_empty() {
        return Some(0);
    }
    text.strip_prefix(sign)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn signals_have_the_numbers_of_linux() {
        for (name, expected) in [
            ("SIGHUP", Some(1)),
            ("SIGKILL", Some(9)),
            ("SIGUSR1", Some(10)),
            ("SIGTERM", Some(15)),
            ("SIGSYS", Some(31)),
            ("SIGIOT", Some(6)),
            ("SIGPOLL", Some(29)),
            ("SIGRTMIN", Some(34)),
            ("SIGRTMIN+3", Some(37)),
            ("SIGRTMAX-1", Some(63)),
            ("SIGRTMAX", Some(64)),
            ("SIGRTMAX-31", None),
            ("TERM", None),
            ("SIGNAL", None),
            ("", None),
        ] {
            assert_eq!(number(name), expected, "{name}");
        }
    }
}
