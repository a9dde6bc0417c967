//! What a container of the fake runtime does, parsed from its command: `sleep 5 exit 3` runs for five seconds and exits
//! with 3. With any other command, the container runs until it is stopped.

use std::time::Duration;

/// See the [module](self).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Script {
    /// After how long it exits by itself, and with which code.
    pub(super) exits: Option<(Duration, i32)>,
    /// How long it runs on after SIGTERM; `None` if it ignores the signal.
    pub(super) stops: Option<Duration>,
}

impl Script {
    /// Words: `true`, `false`, `exit CODE` exit; `sleep SECONDS` takes time; `linger SECONDS` delays the exit after
    /// SIGTERM; `deaf` ignores SIGTERM.
    pub(super) fn parse(command: &[String]) -> Self {
        let mut script = Self {
            exits: None,
            stops: Some(Duration::ZERO),
        };
        let mut slept = None;
        let mut words = command.iter().map(String::as_str);
        while let Some(word) = words.next() {
            match word {
                "true" => script.exits = Some((slept.unwrap_or_default(), 0)),
                "false" => script.exits = Some((slept.unwrap_or_default(), 1)),
                "exit" => script.exits = Some((slept.unwrap_or_default(), number(words.next()))),
                "sleep" => slept = Some(seconds(words.next())),
                "linger" => script.stops = Some(seconds(words.next())),
                "deaf" => script.stops = None,
                _ => {}
            }
        }
        let exits = slept.map(|slept| (slept, 0));
        script.exits = script.exits.or(exits);
        script
    }
}

fn number(word: Option<&str>) -> i32 {
    word.and_then(|word| word.parse().ok()).unwrap_or(0)
}

fn seconds(word: Option<&str>) -> Duration {
    let seconds = word.and_then(|word| word.parse().ok());
    Duration::try_from_secs_f64(seconds.unwrap_or(0.0)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(command: &str, exits: Option<(u64, i32)>, stops: Option<u64>) {
        let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
        let expected = Script {
            exits: exits.map(|(seconds, code)| (Duration::from_secs(seconds), code)),
            stops: stops.map(Duration::from_secs),
        };
        assert_eq!(Script::parse(&words), expected, "{command}");
    }

    #[test]
    fn commands_set_durations_and_exit_codes() {
        check("nginx -g daemon", None, Some(0));
        check("true", Some((0, 0)), Some(0));
        check("sleep 5 exit 3", Some((5, 3)), Some(0));
        check("sleep 5", Some((5, 0)), Some(0));
        check("false", Some((0, 1)), Some(0));
        check("linger 7", None, Some(7));
        check("deaf", None, None);
    }
}
