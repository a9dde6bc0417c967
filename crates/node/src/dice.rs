//! Chance that is decided by names: the same seed and the same names always fall the same way, in
//! whatever order things happen. It must never depend on time or on what else was drawn.

use std::time::Duration;

/// A seed and the names that were mixed into it so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dice(u64);

impl Dice {
    /// Dice with this seed.
    pub fn new(seed: u64) -> Self {
        Self(mix(seed))
    }

    /// The same dice for something of this name.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        // The length keeps "a", "bc" and "ab", "c" apart.
        let begun = self.numbered(name.len() as u64).0;
        let step = |state, byte: u8| mix(state ^ u64::from(byte));
        Self(name.bytes().fold(begun, step))
    }

    /// The same dice for something of this number.
    #[must_use]
    pub fn numbered(self, number: u64) -> Self {
        Self(mix(self.0 ^ mix(number)))
    }

    /// The number that falls.
    pub fn value(self) -> u64 {
        mix(self.0)
    }

    /// Whether something happens that happens to so many of a hundred.
    pub fn falls_within(self, percent: f64) -> bool {
        let [a, b, c, d, ..] = self.value().to_be_bytes();
        let part = f64::from(u32::from_be_bytes([a, b, c, d])) / 4_294_967_296.0;
        part * 100.0 < percent
    }

    /// A duration between these two, in whole milliseconds.
    pub fn between(self, least: Duration, most: Duration) -> Duration {
        let range = most.saturating_sub(least).as_millis();
        let Ok(range) = u64::try_from(range) else {
            return least;
        };
        least + Duration::from_millis(self.value() % range.saturating_add(1))
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
    fn the_same_names_fall_the_same_way_today_and_tomorrow() {
        let dice = Dice::new(7).named("sim-1").numbered(3);
        assert_eq!(
            dice.value(),
            12_982_153_368_906_408_821,
            "fates of old seeds change"
        );
        assert_ne!(
            dice.value(),
            Dice::new(8).named("sim-1").numbered(3).value()
        );
        let pair = |a, b| Dice::new(7).named(a).named(b).value();
        assert_ne!(pair("a", "bc"), pair("ab", "c"));
    }

    #[test]
    fn rates_are_kept() {
        let hits = |percent: f64| {
            let all = (0..10_000).map(|number| Dice::new(1).numbered(number));
            all.filter(|dice| dice.falls_within(percent)).count()
        };
        assert_eq!((hits(0.0), hits(100.0)), (0, 10_000));
        assert!((400..600).contains(&hits(5.0)), "{}", hits(5.0));
    }

    #[test]
    fn durations_lie_between_their_bounds_and_reach_them() {
        let ms = Duration::from_millis;
        let drawn = (0..200).map(|number| Dice::new(1).numbered(number).between(ms(3), ms(6)));
        let drawn: std::collections::BTreeSet<_> = drawn.collect();
        assert_eq!(drawn, [3, 4, 5, 6].map(ms).into());
        assert_eq!(Dice::new(1).between(ms(5), ms(5)), ms(5));
    }
}
