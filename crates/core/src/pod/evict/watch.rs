//! Is the machine short of something now, and was it until a moment ago?

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Signal, Threshold};
use crate::pod::Instant;

/// How much there is of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// What can still be had.
    pub available: u64,
    /// All there is.
    pub capacity: u64,
}

/// What was measured. What cannot be measured is not there, and never short.
pub type Readings = BTreeMap<Signal, Reading>;

/// What the machine lacks, as the conditions of its node say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressures {
    /// Memory.
    pub memory: bool,
    /// Room on disks.
    pub disk: bool,
    /// Process ids.
    pub pids: bool,
}

/// A threshold that is met: there is less than there must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Met {
    /// Which.
    pub threshold: Threshold,
    /// What there is.
    pub reading: Reading,
}

impl Met {
    /// Of one signal, the hard one comes first.
    fn key(&self) -> (Signal, bool) {
        (self.threshold.signal, self.threshold.patience.is_some())
    }
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Watch {
    thresholds: Vec<Threshold>,
    /// How long a pressure is told after it was last seen, so that pods do not come and go with it.
    transition: Duration,
    seen: BTreeMap<Signal, Instant>,
    /// Since when thresholds have been met without a break, the soft ones (`true`) and the hard ones.
    since: BTreeMap<(Signal, bool), Instant>,
}

impl Watch {
    /// Watches over these bounds.
    pub fn new(thresholds: Vec<Threshold>, transition: Duration) -> Self {
        Self {
            thresholds,
            transition,
            seen: BTreeMap::new(),
            since: BTreeMap::new(),
        }
    }

    /// What is short by these readings, the most urgent first.
    pub fn met(&self, readings: &Readings) -> Vec<Met> {
        let met = |threshold: &Threshold| {
            let reading = *readings.get(&threshold.signal)?;
            let bound = threshold.quantity(reading.capacity);
            let short = threshold.signal.amount(reading.available) < bound;
            short.then_some(Met {
                threshold: *threshold,
                reading,
            })
        };
        let mut all: Vec<Met> = self.thresholds.iter().filter_map(met).collect();
        all.sort_by_key(Met::key);
        all
    }

    /// Takes in what is short now, and says what the machine lacks.
    pub fn saw(&mut self, met: &[Met], now: Instant) -> Pressures {
        for met in met {
            self.seen.insert(met.threshold.signal, now);
            self.since.entry(met.key()).or_insert(now);
        }
        self.since
            .retain(|key, _| met.iter().any(|met| met.key() == *key));
        self.seen.retain(|_, at| now < *at + self.transition);
        let any = |belongs: fn(Signal) -> bool| self.seen.keys().any(|signal| belongs(*signal));
        Pressures {
            memory: any(|signal| signal == Signal::Memory),
            disk: any(Signal::is_disk),
            pids: any(|signal| signal == Signal::Pids),
        }
    }

    /// Those for which pods have to go now: patience with them is over.
    pub fn due(&self, met: Vec<Met>, now: Instant) -> Vec<Met> {
        let due = |met: &Met| {
            let Some(patience) = met.threshold.patience else {
                return true;
            };
            let since = self.since.get(&met.key());
            since.is_some_and(|since| now.saturating_sub(*since) >= patience)
        };
        met.into_iter().filter(due).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod::evict::defaults;

    const MINUTE: Duration = Duration::from_mins(1);

    fn watch() -> Watch {
        Watch::new(defaults(), 5 * MINUTE)
    }

    fn readings(signal: Signal, available: u64, capacity: u64) -> Readings {
        let reading = Reading {
            available,
            capacity,
        };
        Readings::from([(signal, reading)])
    }

    #[test]
    fn what_is_short_is_below_its_bound() {
        let check = |signal, available, capacity, expected: bool| {
            let met = watch().met(&readings(signal, available, capacity));
            assert_eq!(!met.is_empty(), expected, "{signal} {available}");
        };
        check(Signal::Memory, 100 << 20, 1 << 30, false);
        check(Signal::Memory, (100 << 20) - 1, 1 << 30, true);
        check(Signal::NodeDisk, 100, 1000, false);
        check(Signal::NodeDisk, 99, 1000, true);
        check(Signal::NodeInodes, 49, 1000, true);
        check(Signal::ImageDisk, 149, 1000, true);
        check(Signal::Pids, 0, 1000, false);
    }

    #[test]
    fn memory_comes_first() {
        let mut all = readings(Signal::NodeDisk, 0, 1000);
        all.extend(readings(Signal::Memory, 0, 1 << 30));
        let first = watch().met(&all)[0];
        assert_eq!(first.threshold.signal, Signal::Memory);
    }

    #[test]
    fn a_soft_threshold_is_told_at_once_and_acted_on_later() {
        let soft = Threshold {
            patience: Some(2 * MINUTE),
            ..defaults()[1]
        };
        let mut watch = Watch::new(vec![soft], 5 * MINUTE);
        let full = readings(Signal::NodeDisk, 0, 1000);
        let mut look = |readings: &Readings, minutes: u32| {
            let met = watch.met(readings);
            let pressures = watch.saw(&met, minutes * MINUTE);
            (pressures.disk, watch.due(met, minutes * MINUTE).len())
        };
        assert_eq!(look(&full, 10), (true, 0));
        assert_eq!(look(&full, 11), (true, 0));
        assert_eq!(look(&full, 12), (true, 1));
        // Whoever recovers is waited for anew.
        assert_eq!(look(&Readings::new(), 13), (true, 0));
        assert_eq!(look(&full, 14), (true, 0));
        assert_eq!(look(&full, 16), (true, 1));
    }

    #[test]
    fn a_hard_threshold_goes_before_a_soft_one() {
        let hard = defaults()[1];
        let soft = Threshold {
            patience: Some(MINUTE),
            ..hard
        };
        let mut watch = Watch::new(vec![soft, hard], 5 * MINUTE);
        let met = watch.met(&readings(Signal::NodeDisk, 0, 1000));
        watch.saw(&met, MINUTE);
        assert_eq!(watch.due(met, MINUTE)[0].threshold, hard);
    }

    #[test]
    fn a_pressure_lasts_for_a_while() {
        let mut watch = watch();
        let full = watch.met(&readings(Signal::ImageDisk, 0, 1000));
        assert_eq!(watch.saw(&[], MINUTE), Pressures::default());
        let disk = Pressures {
            disk: true,
            ..Pressures::default()
        };
        assert_eq!(watch.saw(&full, 2 * MINUTE), disk);
        assert_eq!(watch.saw(&[], 6 * MINUTE), disk);
        assert_eq!(watch.saw(&[], 7 * MINUTE), Pressures::default());
    }
}
