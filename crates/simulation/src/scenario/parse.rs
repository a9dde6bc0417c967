//! The scalar values of a scenario file: duration ranges, globs, percentages, quantities. Error texts say what is
//! accepted.

use std::time::Duration;

use kennel_core::duration;
use kennel_core::quantity::Quantity;
use serde::{Deserialize, Deserializer, de::Error as _};

use crate::seeded_random::SeededRandom;

/// Always the same, `2s`, or a random duration between two bounds, `1s-5s`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DurationRange {
    pub min: Duration,
    pub max: Duration,
}

impl DurationRange {
    pub fn exactly(duration: Duration) -> Self {
        Self {
            min: duration,
            max: duration,
        }
    }

    pub fn draw(self, random: SeededRandom) -> Duration {
        random.duration_between(self.min, self.max)
    }

    fn parse(text: &str) -> Option<Self> {
        let (min, max) = text.split_once('-').unwrap_or((text, text));
        let (min, max) = (duration::parse(min.trim())?, duration::parse(max.trim())?);
        (min <= max).then_some(Self { min, max })
    }
}

impl<'de> Deserialize<'de> for DurationRange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
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
    pub fn matches(&self, name: &str) -> bool {
        let (pattern, name) = (self.0.as_bytes(), name.as_bytes());
        let (mut p, mut n) = (0, 0);
        // Where to backtrack to: the last star then matches one more character.
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

/// A Kubernetes quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Amount(pub String);

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Scalar {
            Number(u64),
            Text(String),
        }
        let text = match Scalar::deserialize(deserializer)? {
            Scalar::Number(number) => number.to_string(),
            Scalar::Text(text) => text,
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
    fn duration_ranges_are_parsed() {
        let check = |text: &str, expected: Option<(u64, u64)>| {
            let parsed = DurationRange::parse(text);
            let parsed = parsed.map(|range| (range.min.as_millis(), range.max.as_millis()));
            let expected = expected.map(|(min, max)| (min.into(), max.into()));
            assert_eq!(parsed, expected, "{text}");
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
            let matches = Glob(glob.to_owned()).matches(name);
            assert_eq!(matches, expected, "{glob} {name}");
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
