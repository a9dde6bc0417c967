//! The two clocks: [`Timestamp`] is wall time and may jump, [`Monotonic`] only moves forward and means nothing to
//! another process. Neither reads a clock; callers pass the time in.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Wall time in milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    pub const EPOCH: Self = Self(0);
    /// Before every time that an object can carry.
    pub const MIN: Self = Self(i64::MIN);
    /// After every time that an object can carry.
    pub const MAX: Self = Self(i64::MAX);

    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    pub const fn from_secs(seconds: i64) -> Self {
        Self(seconds.saturating_mul(1000))
    }

    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Whole seconds, rounded towards the past.
    pub const fn as_secs(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// Parses RFC 3339, as API objects carry times.
    pub fn parse(text: &str) -> Option<Self> {
        let time: jiff::Timestamp = text.parse().ok()?;
        Some(Self(time.as_millisecond()))
    }

    /// Saturates at [`Self::MIN`] and [`Self::MAX`]; `millis` may be negative.
    #[must_use]
    pub const fn saturating_add_millis(self, millis: i64) -> Self {
        Self(self.0.saturating_add(millis))
    }

    /// Milliseconds from `earlier` to `self`; negative when `earlier` is later.
    pub const fn millis_since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Zero when `earlier` is later.
    pub fn saturating_since(self, earlier: Self) -> Duration {
        let millis = u64::try_from(self.millis_since(earlier)).unwrap_or(0);
        Duration::from_millis(millis)
    }
}

impl Add<Duration> for Timestamp {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        self.saturating_add_millis(millis)
    }
}

/// RFC 3339 in whole seconds, as API objects carry times. Times beyond the years that it has are shown as the first or the last
/// of them.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, last) = (jiff::Timestamp::MIN, jiff::Timestamp::MAX);
        let seconds = self.as_secs().clamp(first.as_second(), last.as_second());
        jiff::Timestamp::from_second(seconds).unwrap_or(last).fmt(f)
    }
}

impl From<&k8s_openapi::apimachinery::pkg::apis::meta::v1::Time> for Timestamp {
    fn from(time: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Time) -> Self {
        Self(time.0.as_millisecond())
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let time = jiff::Timestamp::deserialize(deserializer)?;
        Ok(Self(time.as_millisecond()))
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
    fn differences_never_overflow() {
        assert_eq!(
            Timestamp::MIN.saturating_since(Timestamp::MAX),
            Duration::ZERO
        );
        assert_eq!(Timestamp::MAX + Duration::MAX, Timestamp::MAX);
        assert_eq!(Monotonic::START - Monotonic::MAX, Duration::ZERO);
    }
}
