//! Which thresholds are crossed, and which pressure conditions the node reports.

use std::collections::BTreeMap;
use std::time::Duration;

use kennel_types::Monotonic;

use super::{Signal, Threshold};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    pub available: u64,
    pub capacity: u64,
}

/// A signal that cannot be measured is absent, and its thresholds are never crossed.
pub type Readings = BTreeMap<Signal, Reading>;

/// The pressure conditions of the node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressures {
    pub memory: bool,
    pub disk: bool,
    pub pids: bool,
}

/// A threshold and the reading that is below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThresholdMet {
    pub threshold: Threshold,
    pub reading: Reading,
}

impl ThresholdMet {
    /// Sorts the hard threshold of a signal before the soft one.
    fn key(&self) -> (Signal, bool) {
        (self.threshold.signal, self.threshold.grace_period.is_some())
    }
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct PressureMonitor {
    thresholds: Vec<Threshold>,
    /// How long a condition stays after it was last observed, so that it does not oscillate.
    transition: Duration,
    last_seen: BTreeMap<Signal, Monotonic>,
    /// Since when each threshold has been crossed without interruption; `true` for soft thresholds.
    since: BTreeMap<(Signal, bool), Monotonic>,
}

impl PressureMonitor {
    pub fn new(thresholds: Vec<Threshold>, transition: Duration) -> Self {
        Self {
            thresholds,
            transition,
            last_seen: BTreeMap::new(),
            since: BTreeMap::new(),
        }
    }

    /// The thresholds that these readings cross, the most urgent first.
    pub fn crossed(&self, readings: &Readings) -> Vec<ThresholdMet> {
        let crossed = |threshold: &Threshold| {
            let reading = *readings.get(&threshold.signal)?;
            let bound = threshold.quantity(reading.capacity);
            let short = threshold.signal.amount(reading.available) < bound;
            short.then_some(ThresholdMet {
                threshold: *threshold,
                reading,
            })
        };
        let mut all: Vec<ThresholdMet> = self.thresholds.iter().filter_map(crossed).collect();
        all.sort_by_key(ThresholdMet::key);
        all
    }

    /// Records the thresholds that are crossed now, and returns the conditions to report.
    pub fn observe(&mut self, crossed: &[ThresholdMet], now: Monotonic) -> Pressures {
        for crossed in crossed {
            self.last_seen.insert(crossed.threshold.signal, now);
            self.since.entry(crossed.key()).or_insert(now);
        }
        self.since
            .retain(|key, _| crossed.iter().any(|crossed| crossed.key() == *key));
        self.last_seen.retain(|_, at| now < *at + self.transition);
        let any =
            |belongs: fn(Signal) -> bool| self.last_seen.keys().any(|signal| belongs(*signal));
        Pressures {
            memory: any(|signal| signal == Signal::Memory),
            disk: any(Signal::is_disk),
            pids: any(|signal| signal == Signal::Pids),
        }
    }

    /// The thresholds to evict pods for now: the hard ones, and soft ones whose grace period has passed.
    pub fn due(&self, crossed: Vec<ThresholdMet>, now: Monotonic) -> Vec<ThresholdMet> {
        let due = |crossed: &ThresholdMet| {
            let Some(grace_period) = crossed.threshold.grace_period else {
                return true;
            };
            let since = self.since.get(&crossed.key());
            since.is_some_and(|since| now.saturating_since(*since) >= grace_period)
        };
        crossed.into_iter().filter(due).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod::eviction::defaults;

    const MINUTE: Duration = Duration::from_mins(1);

    fn at(minutes: u64) -> Monotonic {
        Monotonic::since_start(Duration::from_mins(minutes))
    }

    fn monitor() -> PressureMonitor {
        PressureMonitor::new(defaults(), 5 * MINUTE)
    }

    fn readings(signal: Signal, available: u64, capacity: u64) -> Readings {
        let reading = Reading {
            available,
            capacity,
        };
        Readings::from([(signal, reading)])
    }

    #[test]
    fn a_threshold_is_crossed_below_its_bound() {
        let check = |signal, available, capacity, expected: bool| {
            let crossed = monitor().crossed(&readings(signal, available, capacity));
            assert_eq!(!crossed.is_empty(), expected, "{signal} {available}");
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
        let first = monitor().crossed(&all)[0];
        assert_eq!(first.threshold.signal, Signal::Memory);
    }

    #[test]
    fn a_soft_threshold_is_reported_at_once_and_evicts_after_its_grace_period() {
        let soft = Threshold {
            grace_period: Some(2 * MINUTE),
            ..defaults()[1]
        };
        let mut monitor = PressureMonitor::new(vec![soft], 5 * MINUTE);
        let full = readings(Signal::NodeDisk, 0, 1000);
        let mut observe = |readings: &Readings, minutes: u64| {
            let crossed = monitor.crossed(readings);
            let pressures = monitor.observe(&crossed, at(minutes));
            (pressures.disk, monitor.due(crossed, at(minutes)).len())
        };
        assert_eq!(observe(&full, 10), (true, 0));
        assert_eq!(observe(&full, 11), (true, 0));
        assert_eq!(observe(&full, 12), (true, 1));
        // A signal that recovers starts a new grace period.
        assert_eq!(observe(&Readings::new(), 13), (true, 0));
        assert_eq!(observe(&full, 14), (true, 0));
        assert_eq!(observe(&full, 16), (true, 1));
    }

    #[test]
    fn a_hard_threshold_comes_before_a_soft_one() {
        let hard = defaults()[1];
        let soft = Threshold {
            grace_period: Some(MINUTE),
            ..hard
        };
        let mut monitor = PressureMonitor::new(vec![soft, hard], 5 * MINUTE);
        let crossed = monitor.crossed(&readings(Signal::NodeDisk, 0, 1000));
        monitor.observe(&crossed, at(1));
        assert_eq!(monitor.due(crossed, at(1))[0].threshold, hard);
    }

    #[test]
    fn a_pressure_lasts_for_the_transition_period() {
        let mut monitor = monitor();
        let full = monitor.crossed(&readings(Signal::ImageDisk, 0, 1000));
        assert_eq!(monitor.observe(&[], at(1)), Pressures::default());
        let disk = Pressures {
            disk: true,
            ..Pressures::default()
        };
        assert_eq!(monitor.observe(&full, at(2)), disk);
        assert_eq!(monitor.observe(&[], at(6)), disk);
        assert_eq!(monitor.observe(&[], at(7)), Pressures::default());
    }
}
