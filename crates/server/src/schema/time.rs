//! Times as the API writes them, read with the rules and the errors of Go's `time.Parse`.

use std::fmt;

use jiff::SignedDuration;
use jiff::civil::{Date, DateTime, datetime};

use super::go;

/// Which of the two time types is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Precision {
    /// `metav1.Time`.
    Seconds,
    /// `metav1.MicroTime`.
    Micros,
}

impl Precision {
    fn layout(self) -> &'static str {
        match self {
            Self::Seconds => "2006-01-02T15:04:05Z07:00",
            Self::Micros => "2006-01-02T15:04:05.000000Z07:00",
        }
    }
}

/// Why a text is not a time, in the words of Go's `time.ParseError`.
#[derive(Debug, thiserror::Error)]
#[error("parsing time {}{problem}", go::quote(text))]
pub struct TimeError {
    text: String,
    problem: Problem,
}

#[derive(Debug)]
enum Problem {
    CannotParse {
        layout: &'static str,
        rest: String,
        element: &'static str,
    },
    OutOfRange(&'static str),
    ExtraText(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CannotParse {
                layout,
                rest,
                element,
            } => {
                let [layout, rest, element] = [*layout, rest.as_str(), *element].map(go::quote);
                write!(f, " as {layout}: cannot parse {rest} as {element}")
            }
            Self::OutOfRange(name) => write!(f, ": {name} out of range"),
            Self::ExtraText(text) => write!(f, ": extra text: {}", go::quote(text)),
        }
    }
}

/// The canonical form of a time: in UTC, with as many decimals as the type keeps. `None` is
/// Go's zero time, which is written as null.
pub(super) fn canonical(text: &str, precision: Precision) -> Result<Option<String>, TimeError> {
    let mut reader = Reader {
        text,
        rest: text,
        precision,
    };
    let utc = reader.read()?;
    if utc == ZERO_TIME {
        return Ok(None);
    }
    let seconds = utc.strftime("%Y-%m-%dT%H:%M:%S");
    Ok(Some(match precision {
        Precision::Seconds => format!("{seconds}Z"),
        Precision::Micros => format!("{seconds}.{:06}Z", utc.subsec_nanosecond() / 1000),
    }))
}

const ZERO_TIME: DateTime = datetime(1, 1, 1, 0, 0, 0, 0);

struct Reader<'a> {
    text: &'a str,
    rest: &'a str,
    precision: Precision,
}

impl Reader<'_> {
    fn read(&mut self) -> Result<DateTime, TimeError> {
        let year = self.year()?;
        self.literal("-")?;
        let month = self.number("01", true, "month", 1..=12)?;
        self.literal("-")?;
        // The range depends on the month and is checked at the end.
        let day = self.number("02", true, "day", 0..=99)?;
        self.literal("T")?;
        let hour = self.number("15", false, "hour", 0..=23)?;
        self.literal(":")?;
        let minute = self.number("04", true, "minute", 0..=59)?;
        self.literal(":")?;
        let second = self.number("05", true, "second", 0..=59)?;
        let nanos = match self.precision {
            Precision::Seconds => self.optional_fraction(),
            Precision::Micros => self.six_decimals()?,
        };
        let offset = self.zone()?;
        if !self.rest.is_empty() {
            return Err(self.error(Problem::ExtraText(self.rest.to_owned())));
        }
        let date = Date::new(year, month, day).map_err(|_| self.out_of_range("day"))?;
        let civil = date.at(hour, minute, second, nanos);
        civil
            .checked_sub(SignedDuration::from_secs(offset))
            .map_err(|_| self.out_of_range("year"))
    }

    fn year(&mut self) -> Result<i16, TimeError> {
        let digits = self.rest.get(..4).filter(|d| all_digits(d));
        let year = digits.and_then(|digits| digits.parse().ok());
        let year = year.ok_or_else(|| self.cannot_parse(self.rest, "2006"))?;
        self.rest = &self.rest[4..];
        Ok(year)
    }

    fn literal(&mut self, expected: &'static str) -> Result<(), TimeError> {
        let rest = self.rest.strip_prefix(expected);
        self.rest = rest.ok_or_else(|| self.cannot_parse(self.rest, expected))?;
        Ok(())
    }

    /// A number of two digits, or of one where that is allowed.
    fn number(
        &mut self,
        element: &'static str,
        two_digits: bool,
        name: &'static str,
        range: std::ops::RangeInclusive<i8>,
    ) -> Result<i8, TimeError> {
        let length = match self
            .rest
            .bytes()
            .take_while(u8::is_ascii_digit)
            .take(2)
            .count()
        {
            2 => 2,
            1 if !two_digits => 1,
            _ => return Err(self.cannot_parse(self.rest, element)),
        };
        let (digits, rest) = self.rest.split_at(length);
        self.rest = rest;
        let number = digits.parse().map_err(|_| self.out_of_range(name))?;
        if range.contains(&number) {
            return Ok(number);
        }
        Err(self.out_of_range(name))
    }

    fn optional_fraction(&mut self) -> i32 {
        let Some(decimals) = self.rest.strip_prefix(['.', ',']) else {
            return 0;
        };
        let length = decimals.bytes().take_while(u8::is_ascii_digit).count();
        if length == 0 {
            return 0;
        }
        let (decimals, rest) = decimals.split_at(length);
        self.rest = rest;
        nanoseconds(decimals)
    }

    fn six_decimals(&mut self) -> Result<i32, TimeError> {
        let decimals = self.rest.strip_prefix(['.', ',']);
        let decimals = decimals.and_then(|rest| rest.get(..6));
        let decimals = decimals.filter(|decimals| all_digits(decimals));
        let decimals = decimals.ok_or_else(|| self.cannot_parse(self.rest, ".000000"))?;
        self.rest = &self.rest[7..];
        Ok(nanoseconds(decimals))
    }

    /// Seconds east of UTC.
    fn zone(&mut self) -> Result<i64, TimeError> {
        if let Some(rest) = self.rest.strip_prefix('Z') {
            self.rest = rest;
            return Ok(0);
        }
        let hold = self.rest;
        let bytes = hold.as_bytes();
        let two = |at: usize| hold.get(at..at + 2).filter(|d| all_digits(d));
        let (Some(sign @ (b'+' | b'-')), Some(hours), Some(b':'), Some(minutes)) =
            (bytes.first(), two(1), bytes.get(3), two(4))
        else {
            return Err(self.cannot_parse(hold, "Z07:00"));
        };
        self.rest = &hold[6..];
        let hours: i64 = hours.parse().unwrap_or(i64::MAX);
        let minutes: i64 = minutes.parse().unwrap_or(i64::MAX);
        if hours > 24 {
            return Err(self.out_of_range("time zone offset hour"));
        }
        if minutes > 60 {
            return Err(self.out_of_range("time zone offset minute"));
        }
        let seconds = (hours * 60 + minutes) * 60;
        Ok(if *sign == b'-' { -seconds } else { seconds })
    }

    fn cannot_parse(&self, rest: &str, element: &'static str) -> TimeError {
        self.error(Problem::CannotParse {
            layout: self.precision.layout(),
            rest: rest.to_owned(),
            element,
        })
    }

    fn out_of_range(&self, name: &'static str) -> TimeError {
        self.error(Problem::OutOfRange(name))
    }

    fn error(&self, problem: Problem) -> TimeError {
        TimeError {
            text: self.text.to_owned(),
            problem,
        }
    }
}

fn all_digits(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
}

fn nanoseconds(decimals: &str) -> i32 {
    let kept = &decimals[..decimals.len().min(9)];
    let number: i32 = kept.parse().unwrap_or(0);
    let missing = u32::try_from(9 - kept.len()).unwrap_or(0);
    number * 10_i32.pow(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, precision: Precision, expected: Result<Option<&str>, &str>) {
        let actual = canonical(text, precision).map_err(|error| error.to_string());
        let actual = actual.as_ref().map(Option::as_deref);
        assert_eq!(actual.map_err(String::as_str), expected, "{text}");
    }

    #[test]
    fn times_become_whole_seconds_in_utc() {
        for (text, expected) in [
            ("2024-02-29T01:02:03Z", "2024-02-29T01:02:03Z"),
            ("2024-02-29T01:02:03.999Z", "2024-02-29T01:02:03Z"),
            ("2024-02-29T01:02:03+02:00", "2024-02-28T23:02:03Z"),
            ("2024-02-29T1:02:03-00:30", "2024-02-29T01:32:03Z"),
            ("0000-01-01T00:00:00Z", "0000-01-01T00:00:00Z"),
            ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z"),
        ] {
            check(text, Precision::Seconds, Ok(Some(expected)));
        }
        check("0001-01-01T00:00:00Z", Precision::Seconds, Ok(None));
    }

    #[test]
    fn micro_times_keep_six_decimals() {
        for (text, expected) in [
            ("2024-02-29T01:02:03.000001Z", "2024-02-29T01:02:03.000001Z"),
            (
                "2024-02-29T01:02:03.500000+01:00",
                "2024-02-29T00:02:03.500000Z",
            ),
        ] {
            check(text, Precision::Micros, Ok(Some(expected)));
        }
        check(
            "2024-02-29T01:02:03Z",
            Precision::Micros,
            Err(
                r#"parsing time "2024-02-29T01:02:03Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000""#,
            ),
        );
    }

    #[test]
    fn texts_that_are_not_times() {
        for (text, expected) in [
            (
                "",
                r#" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "2006""#,
            ),
            (
                "now",
                r#" as "2006-01-02T15:04:05Z07:00": cannot parse "now" as "2006""#,
            ),
            (
                "2024/01",
                r#" as "2006-01-02T15:04:05Z07:00": cannot parse "/01" as "-""#,
            ),
            ("2024-13-01T00:00:00Z", ": month out of range"),
            ("2023-02-29T00:00:00Z", ": day out of range"),
            ("2023-02-10T24:00:00Z", ": hour out of range"),
            ("2023-02-10T00:60:00Z", ": minute out of range"),
            ("2023-02-10T00:00:60Z", ": second out of range"),
            (
                "2023-02-10T00:00:00",
                r#" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "Z07:00""#,
            ),
            ("2023-02-10T00:00:00Z!", r#": extra text: "!""#),
            (
                "2023-02-10T00:00:00+25:00",
                ": time zone offset hour out of range",
            ),
        ] {
            let expected = format!("parsing time {text:?}{expected}");
            check(text, Precision::Seconds, Err(&expected));
        }
    }
}
