//! Deterministic random values: a hash of a seed and of names, so that the same seed and the same names give the
//! same value in whatever order callers ask. It must never depend on time or on earlier draws.

use std::time::Duration;

/// A seed and the names and numbers that were mixed into it so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeededRandom(u64);

impl SeededRandom {
    pub fn new(seed: u64) -> Self {
        Self(mix(seed))
    }

    /// Mixes a name in.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        // The length keeps "a", "bc" and "ab", "c" apart.
        let start = self.numbered(name.len() as u64).0;
        let step = |state, byte: u8| mix(state ^ u64::from(byte));
        Self(name.bytes().fold(start, step))
    }

    /// Mixes a number in.
    #[must_use]
    pub fn numbered(self, number: u64) -> Self {
        Self(mix(self.0 ^ mix(number)))
    }

    pub fn value(self) -> u64 {
        mix(self.0)
    }

    /// True with a probability of `percent` out of 100.
    pub fn happens(self, percent: f64) -> bool {
        let [a, b, c, d, ..] = self.value().to_be_bytes();
        let fraction = f64::from(u32::from_be_bytes([a, b, c, d])) / 4_294_967_296.0;
        fraction * 100.0 < percent
    }

    /// A duration between these two, both included, in whole milliseconds.
    pub fn duration_between(self, min: Duration, max: Duration) -> Duration {
        let range = max.saturating_sub(min).as_millis();
        let Ok(range) = u64::try_from(range) else {
            return min;
        };
        min + Duration::from_millis(self.value() % range.saturating_add(1))
    }

    /// A version-4 UUID.
    pub fn uuid(self) -> String {
        let (high, low) = (self.value(), self.numbered(1).value());
        let hex = format!("{high:016x}{low:016x}");
        // The version digit 4 and the variant digit 8 replace the digits 12 and 16.
        format!(
            "{}-{}-4{}-8{}-{}",
            &hex[..8],
            &hex[8..12],
            &hex[13..16],
            &hex[17..20],
            &hex[20..]
        )
    }
}

/// The finaliser of splitmix64: every bit of the input changes half of those of the output.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_and_names_give_the_same_value_in_every_release() {
        let random = SeededRandom::new(7).named("sim-1").numbered(3);
        assert_eq!(
            random.value(),
            12_982_153_368_906_408_821,
            "scenarios with a recorded seed play out differently"
        );
        assert_ne!(
            random.value(),
            SeededRandom::new(8).named("sim-1").numbered(3).value()
        );
        let pair = |a, b| SeededRandom::new(7).named(a).named(b).value();
        assert_ne!(pair("a", "bc"), pair("ab", "c"));
    }

    #[test]
    fn probabilities_are_kept() {
        let hits = |percent: f64| {
            let all = (0..10_000).map(|number| SeededRandom::new(1).numbered(number));
            all.filter(|random| random.happens(percent)).count()
        };
        assert_eq!((hits(0.0), hits(100.0)), (0, 10_000));
        assert!((400..600).contains(&hits(5.0)), "{}", hits(5.0));
    }

    #[test]
    fn durations_lie_between_their_bounds_and_reach_them() {
        let ms = Duration::from_millis;
        let draw = |number| SeededRandom::new(1).numbered(number);
        let drawn = (0..200).map(|number| draw(number).duration_between(ms(3), ms(6)));
        let drawn: std::collections::BTreeSet<_> = drawn.collect();
        assert_eq!(drawn, [3, 4, 5, 6].map(ms).into());
        assert_eq!(draw(1).duration_between(ms(5), ms(5)), ms(5));
    }

    #[test]
    fn uuids_have_the_standard_form() {
        let id = SeededRandom::new(1).uuid();
        let lengths: Vec<usize> = id.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12], "{id}");
    }
}
