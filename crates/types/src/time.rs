//! The two clocks: [`Timestamp`] is wall time and may jump, [`Monotonic`] only moves forward and means nothing to
//! another process. Neither reads a clock; callers pass the time in.

use std::fmt;
use std::ops::{Add, Sub};
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Wall time in microseconds since the Unix epoch, which is as fine as API objects carry times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    pub const EPOCH: Self = Self(0);
    /// Before every time that an object can carry.
    pub const MIN: Self = Self(i64::MIN);
    /// After every time that an object can carry.
    pub const MAX: Self = Self(i64::MAX);

    pub const fn from_millis(millis: i64) -> Self {
        Self(millis.saturating_mul(1000))
    }

    pub const fn from_secs(seconds: i64) -> Self {
        Self(seconds.saturating_mul(1_000_000))
    }

    /// Whole milliseconds, rounded towards the past.
    pub const fn as_millis(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// Whole seconds, rounded towards the past.
    pub const fn as_secs(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    /// Parses RFC 3339, as API objects carry times.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    /// Saturates at [`Self::MIN`] and [`Self::MAX`]; `millis` may be negative.
    #[must_use]
    pub const fn saturating_add_millis(self, millis: i64) -> Self {
        Self(self.0.saturating_add(millis.saturating_mul(1000)))
    }

    /// Whole milliseconds from `earlier` to `self`, rounded down; negative when `earlier` is later.
    pub const fn millis_since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0).div_euclid(1000)
    }

    /// Zero when `earlier` is later.
    pub fn saturating_since(self, earlier: Self) -> Duration {
        let micros = u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0);
        Duration::from_micros(micros)
    }

    /// RFC 3339 with so many decimals of a second, at most six.
    pub fn to_rfc3339(self, decimals: usize) -> String {
        format!("{:.decimals$}", self.calendar())
    }

    /// The format of dates in HTTP headers.
    pub fn to_http_date(self) -> String {
        let date = self.calendar().strftime("%a, %d %b %Y %H:%M:%S GMT");
        date.to_string()
    }

    /// Times beyond the years that the calendar has become the first or the last of them.
    fn calendar(self) -> jiff::Timestamp {
        let (first, last) = (jiff::Timestamp::MIN, jiff::Timestamp::MAX);
        let micros = self.0.clamp(first.as_microsecond(), last.as_microsecond());
        jiff::Timestamp::from_microsecond(micros).unwrap_or(last)
    }
}

/// A text that is not a time in RFC 3339.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidTimestamp;

impl fmt::Display for InvalidTimestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a time in RFC 3339")
    }
}

impl std::error::Error for InvalidTimestamp {}

impl FromStr for Timestamp {
    type Err = InvalidTimestamp;

    fn from_str(text: &str) -> Result<Self, InvalidTimestamp> {
        let time: jiff::Timestamp = text.parse().map_err(|_| InvalidTimestamp)?;
        Ok(Self(time.as_microsecond()))
    }
}

impl Add<Duration> for Timestamp {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        let micros = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(micros))
    }
}

/// RFC 3339 in whole seconds, as API objects carry times. Times beyond the years that it has are shown as the first or the last
/// of them.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0}", self.calendar())
    }
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        match time.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(since) => Self::EPOCH + since,
            Err(before) => {
                let micros = i64::try_from(before.duration().as_micros());
                Self(micros.map_or(i64::MIN, i64::wrapping_neg))
            }
        }
    }
}

impl From<&Time> for Timestamp {
    fn from(time: &Time) -> Self {
        Self(time.0.as_microsecond())
    }
}

impl From<Timestamp> for Time {
    fn from(time: Timestamp) -> Self {
        Self(time.calendar())
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let time = jiff::Timestamp::deserialize(deserializer)?;
        Ok(Self(time.as_microsecond()))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Monotonic time, counted from an arbitrary start of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Monotonic(Duration);

impl Monotonic {
    /// The start that all times of this process count from.
    pub const START: Self = Self(Duration::ZERO);
    /// Never reached.
    pub const MAX: Self = Self(Duration::MAX);

    pub const fn since_start(elapsed: Duration) -> Self {
        Self(elapsed)
    }

    pub const fn elapsed(self) -> Duration {
        self.0
    }

    /// Zero when `earlier` is later.
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    #[must_use]
    pub const fn saturating_add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }
}

impl Add<Duration> for Monotonic {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        self.saturating_add(duration)
    }
}

impl Sub for Monotonic {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.saturating_since(earlier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_parse_and_print_rfc_3339() {
        let time = Timestamp::parse("1970-01-01T00:00:07Z").unwrap();
        assert_eq!(time, Timestamp::from_secs(7));
        assert_eq!(time.to_string(), "1970-01-01T00:00:07Z");
        assert_eq!(Timestamp::parse("yesterday"), None);
        assert_eq!(Timestamp::MAX.to_string(), "9999-12-30T22:00:00Z");
        assert!(Timestamp::parse(&Timestamp::MIN.to_string()).is_some());
    }

    #[test]
    fn times_are_kept_to_the_microsecond() {
        let time = Timestamp::parse("2026-01-02T03:04:05.000006789Z").unwrap();
        assert_eq!(time.to_rfc3339(6), "2026-01-02T03:04:05.000006Z");
        assert_eq!(time.to_rfc3339(3), "2026-01-02T03:04:05.000Z");
        assert_eq!(time.to_string(), "2026-01-02T03:04:05Z");
        assert_eq!(time.to_http_date(), "Fri, 02 Jan 2026 03:04:05 GMT");
        let whole = Timestamp::from_secs(time.as_secs());
        assert_eq!(time.saturating_since(whole), Duration::from_micros(6));
        assert_eq!(
            (time.millis_since(whole), whole.millis_since(time)),
            (0, -1)
        );
        for (at, expected) in [
            (SystemTime::UNIX_EPOCH + Duration::from_micros(5), 5),
            (SystemTime::UNIX_EPOCH - Duration::from_micros(5), -5),
        ] {
            assert_eq!(Timestamp::from(at), Timestamp(expected));
        }
        assert_eq!(Timestamp::from(&Time::from(time)), time);
    }

    #[test]
    fn differences_never_overflow() {
        assert_eq!(
            Timestamp::MIN.saturating_since(Timestamp::MAX),
            Duration::ZERO
        );
        assert_eq!(Timestamp::MAX + Duration::MAX, Timestamp::MAX);
        assert_eq!(Monotonic::START - Monotonic::MAX, Duration::ZERO);
    }
}
