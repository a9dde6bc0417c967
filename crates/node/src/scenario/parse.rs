//! The small languages of a scenario: durations, names with stars, shares, amounts. Each refuses what
//! it does not understand in words that say what it wants.

use std::time::Duration;

use kennel_core::quantity::Quantity;
use serde::{Deserialize, Deserializer, de::Error as _};

use crate::dice::Dice;

/// How long something takes: always the same, `2s`, or something between two bounds, `1s-5s`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// At least.
    pub least: Duration,
    /// At most.
    pub most: Duration,
}

impl Span {
    /// Always the same.
    pub fn of(length: Duration) -> Self {
        Self {
            least: length,
            most: length,
        }
    }

    /// How long it is this time.
    pub fn draw(self, dice: Dice) -> Duration {
        dice.between(self.least, self.most)
    }
}

fn span(text: &str) -> Option<Span> {
    let (least, most) = text.split_once('-').unwrap_or((text, text));
    let (least, most) = (duration(least.trim())?, duration(most.trim())?);
    (least <= most).then_some(Span { least, most })
}

/// `1h30m`, `2s`, `500ms`, as Kubernetes writes durations in flags.
pub fn duration(mut text: &str) -> Option<Duration> {
    let mut sum = Duration::ZERO;
    if text.is_empty() {
        return None;
    }
    while !text.is_empty() {
        let digits = text.find(|c: char| !c.is_ascii_digit())?;
        let number: u32 = text[..digits].parse().ok()?;
        let units = text[digits..].find(|c: char| c.is_ascii_digit());
        let units = units.map_or(text.len(), |length| digits + length);
        let unit = match &text[digits..units] {
            "ms" => Duration::from_millis(1),
            "s" => Duration::from_secs(1),
            "m" => Duration::from_mins(1),
            "h" => Duration::from_hours(1),
            _ => return None,
        };
        sum = sum.checked_add(unit.checked_mul(number)?)?;
        text = &text[units..];
    }
    Some(sum)
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        span(&text).ok_or_else(|| {
            let wanted = "a duration such as 500ms, 2s or 1m30s, or a range such as 1s-5s";
            D::Error::custom(format!("{text:?} is not {wanted}"))
        })
    }
}

/// A name in which `*` stands for any characters and `?` for one.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Glob(String);

impl Default for Glob {
    fn default() -> Self {
        Self("*".to_owned())
    }
}

impl Glob {
    /// Whether it stands for this name.
    pub fn matches(&self, name: &str) -> bool {
        let (pattern, name) = (self.0.as_bytes(), name.as_bytes());
        let (mut p, mut n) = (0, 0);
        // Where to go on when the last star has to stand for one character more.
        let mut star = None;
        while n < name.len() {
            match pattern.get(p) {
                Some(b'*') => {
                    star = Some((p + 1, n));
                    p += 1;
                }
                Some(c) if *c == b'?' || *c == name[n] => (p, n) = (p + 1, n + 1),
                _ => {
                    let Some((after, from)) = star else {
                        return false;
                    };
                    star = Some((after, from + 1));
                    (p, n) = (after, from + 1);
                }
            }
        }
        pattern[p..].iter().all(|c| *c == b'*')
    }
}

/// So many of a hundred.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Percent(pub f64);

impl Default for Percent {
    fn default() -> Self {
        Self(100.0)
    }
}

impl<'de> Deserialize<'de> for Percent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = f64::deserialize(deserializer)?;
        if (0.0..=100.0).contains(&number) {
            return Ok(Self(number));
        }
        Err(D::Error::custom(format!(
            "{number} is not a percentage: it must be between 0 and 100"
        )))
    }
}

/// An amount of a resource, as Kubernetes writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Amount(pub String);

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Number(u64),
            Text(String),
        }
        let text = match Written::deserialize(deserializer)? {
            Written::Number(number) => number.to_string(),
            Written::Text(text) => text,
        };
        match Quantity::parse(&text) {
            Ok(_) => Ok(Self(text)),
            Err(error) => Err(D::Error::custom(format!("{text:?}: {error}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read() {
        let check = |text: &str, expected: Option<(u64, u64)>| {
            let seen = span(text).map(|span| (span.least.as_millis(), span.most.as_millis()));
            let expected = expected.map(|(least, most)| (least.into(), most.into()));
            assert_eq!(seen, expected, "{text}");
        };
        check("2s", Some((2000, 2000)));
        check("500ms", Some((500, 500)));
        check("1m30s", Some((90_000, 90_000)));
        check("1s-5s", Some((1000, 5000)));
        check("1s - 1h", Some((1000, 3_600_000)));
        for wrong in [
            "",
            "5",
            "s",
            "5s-",
            "-5s",
            "5s-1s",
            "5 s",
            "1d",
            "99999999999s",
        ] {
            check(wrong, None);
        }
    }

    #[test]
    fn stars_stand_for_anything() {
        let check = |glob: &str, name: &str, expected: bool| {
            let seen = Glob(glob.to_owned()).matches(name);
            assert_eq!(seen, expected, "{glob} {name}");
        };
        check("*", "", true);
        check("sim-1", "sim-1", true);
        check("sim-1", "sim-12", false);
        check("sim-1*", "sim-12", true);
        check("sim-?", "sim-12", false);
        check("sim-??", "sim-12", true);
        check("*/agent:*", "example.com/agent:1.2", true);
        check("*/agent:*", "example.com/agents:1.2", false);
        check("*ab*ab", "abxabab", true);
        check("", "a", false);
    }
}
