//! What a simulated container does, read from its command: `sleep 5 exit 3` runs for five seconds and returns 3.
//! Whatever else a command says, the container runs until it is stopped.

use std::time::Duration;

/// See the [module](self).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Play {
    /// After how long it ends by itself, and with what.
    pub(super) ends: Option<(Duration, i32)>,
    /// How long it takes to end once it is asked to; none: it must be killed.
    pub(super) obeys: Option<Duration>,
}

impl Play {
    /// Reads words: `true`, `false`, `exit CODE` end it; `sleep SECONDS` takes time; `linger SECONDS` before it
    /// obeys; `deaf` never does.
    pub(super) fn read(command: &[String]) -> Self {
        let mut play = Self {
            ends: None,
            obeys: Some(Duration::ZERO),
        };
        let mut slept = None;
        let mut words = command.iter().map(String::as_str);
        while let Some(word) = words.next() {
            match word {
                "true" => play.ends = Some((slept.unwrap_or_default(), 0)),
                "false" => play.ends = Some((slept.unwrap_or_default(), 1)),
                "exit" => play.ends = Some((slept.unwrap_or_default(), number(words.next()))),
                "sleep" => slept = Some(seconds(words.next())),
                "linger" => play.obeys = Some(seconds(words.next())),
                "deaf" => play.obeys = None,
                _ => {}
            }
        }
        let done = slept.map(|slept| (slept, 0));
        play.ends = play.ends.or(done);
        play
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

    fn check(command: &str, ends: Option<(u64, i32)>, obeys: Option<u64>) {
        let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
        let expected = Play {
            ends: ends.map(|(seconds, code)| (Duration::from_secs(seconds), code)),
            obeys: obeys.map(Duration::from_secs),
        };
        assert_eq!(Play::read(&words), expected, "{command}");
    }

    #[test]
    fn commands_say_how_long_and_what() {
        check("nginx -g daemon", None, Some(0));
        check("true", Some((0, 0)), Some(0));
        check("sleep 5 exit 3", Some((5, 3)), Some(0));
        check("sleep 5", Some((5, 0)), Some(0));
        check("false", Some((0, 1)), Some(0));
        check("linger 7", None, Some(7));
        check("deaf", None, None);
    }
}
