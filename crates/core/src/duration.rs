//! Durations as Kubernetes writes them in flags: `1h30m`, `2s`, `500ms`.

use std::fmt;
use std::time::Duration;

/// Parses hours, minutes, seconds and milliseconds, in any order. `None` if the text is anything else.
pub fn parse(mut text: &str) -> Option<Duration> {
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

/// Prints a duration in the form that [`parse`] reads, without units that are zero: `1h30m`.
#[derive(Clone, Copy, Debug)]
pub struct Go(pub Duration);

impl fmt::Display for Go {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        let millis = u64::from(self.0.subsec_millis());
        let units = [
            (seconds / 3600, "h"),
            (seconds / 60 % 60, "m"),
            (seconds % 60, "s"),
            (millis, "ms"),
        ];
        let present = units.iter().filter(|(number, _)| *number > 0);
        for (number, unit) in present.clone() {
            write!(f, "{number}{unit}")?;
        }
        match present.count() {
            0 => f.write_str("0s"),
            _ => Ok(()),
        }
    }
}

/// Prints a duration as Go's `String` does: `1m0.5s`.
#[derive(Clone, Copy, Debug)]
pub struct GoString(pub Duration);

impl fmt::Display for GoString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, nanos) = (self.0.as_secs(), u64::from(self.0.subsec_nanos()));
        match (seconds, nanos) {
            (0, 0) => return f.write_str("0s"),
            (0, 1..1_000) => return write!(f, "{nanos}ns"),
            (0, 1_000..1_000_000) => return write!(f, "{}µs", Decimal(nanos, 3)),
            (0, _) => return write!(f, "{}ms", Decimal(nanos, 6)),
            _ => {}
        }
        let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
        if hours > 0 {
            write!(f, "{hours}h")?;
        }
        if hours > 0 || minutes > 0 {
            write!(f, "{minutes}m")?;
        }
        let nanos = seconds % 60 * 1_000_000_000 + nanos;
        write!(f, "{}s", Decimal(nanos, 9))
    }
}

/// A number with this many decimal places, printed without trailing zeros.
struct Decimal(u64, u32);

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(number, places) = *self;
        let unit = 10_u64.pow(places);
        write!(f, "{}", number / unit)?;
        if number % unit == 0 {
            return Ok(());
        }
        let places = places as usize;
        let fraction = format!("{:0places$}", number % unit);
        write!(f, ".{}", fraction.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_print_as_they_are_read() {
        for text in ["1h30m", "15m", "2s", "1h1s", "500ms", "0s"] {
            assert_eq!(Go(parse(text).unwrap()).to_string(), text);
        }
        for text in ["", "5", "m", "1d", "-1s", "1h 2m"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn durations_print_as_in_go() {
        for (duration, expected) in [
            (Duration::ZERO, "0s"),
            (Duration::from_nanos(5), "5ns"),
            (Duration::from_nanos(1_500), "1.5µs"),
            (Duration::from_micros(20_500), "20.5ms"),
            (Duration::from_millis(10_021), "10.021s"),
            (Duration::from_mins(1), "1m0s"),
            (Duration::from_millis(3_660_500), "1h1m0.5s"),
        ] {
            assert_eq!(GoString(duration).to_string(), expected);
        }
    }
}
