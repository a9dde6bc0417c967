//! How fast pods may be driven off nodes: one node after the other in each zone, more slowly or not at
//! all where most nodes fail together, for then it is rather the network, or we ourselves, that failed.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// How fast, and what is a disturbance. The defaults are upstream's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Nodes per second in a zone that is well.
    pub eviction: f64,
    /// Nodes per second in a large zone that is disturbed.
    pub secondary_eviction: f64,
    /// The part of a zone that must be unwell for the zone to be disturbed.
    pub unhealthy_zone_threshold: f64,
    /// A zone with more nodes is large; in a smaller one that is disturbed nothing is driven off.
    pub large_zone: usize,
}

impl Default for Rates {
    fn default() -> Self {
        Self {
            eviction: 0.1,
            secondary_eviction: 0.01,
            unhealthy_zone_threshold: 0.55,
            large_zone: 50,
        }
    }
}

/// How a zone is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Normal,
    /// Most of it is gone.
    Partial,
    /// All of it is gone.
    Full,
}

/// Something that concerns all nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// No node of any zone is well: nothing is driven off any more.
    Stopped,
    /// Some node is well again: the others get their full time to follow.
    Resumed,
}

/// Lets one through now and then; what is not used is not saved up.
#[derive(Debug)]
struct Limiter {
    rate: f64,
    free_at: Duration,
}

impl Limiter {
    fn interval(rate: f64) -> Option<Duration> {
        (rate > 0.0)
            .then(|| Duration::try_from_secs_f64(1.0 / rate).ok())
            .flatten()
    }

    fn free_at(&self) -> Option<Duration> {
        Self::interval(self.rate).map(|_| self.free_at)
    }

    fn accept(&mut self, now: Duration) -> bool {
        let free = self.free_at().is_some_and(|at| at <= now);
        if let Some(interval) = Self::interval(self.rate).filter(|_| free) {
            self.free_at = now + interval;
        }
        free
    }

    /// Goes on at another rate. Who had to wait before waits once more.
    fn swap(&mut self, now: Duration, rate: f64) {
        if self.rate.total_cmp(&rate).is_eq() {
            return;
        }
        let free = self.free_at().is_some_and(|at| at <= now);
        self.rate = rate;
        self.free_at = match Self::interval(rate) {
            Some(interval) if !free => now + interval,
            _ => now,
        };
    }
}

#[derive(Debug)]
struct Zone {
    well: usize,
    unwell: usize,
    /// Those that do not count.
    excluded: usize,
    state: State,
    limiter: Limiter,
    waiting: VecDeque<Arc<str>>,
}

/// How a node counts in its zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Its zone.
    pub zone: Arc<str>,
    /// It does not count.
    pub excluded: bool,
    /// It is ready.
    pub well: bool,
}

/// All zones.
#[derive(Debug)]
pub struct Zones {
    rates: Rates,
    by_name: BTreeMap<Arc<str>, Zone>,
    changed: bool,
    stopped: bool,
}

impl Zones {
    /// None yet.
    pub fn new(rates: Rates) -> Self {
        Self {
            rates,
            by_name: BTreeMap::new(),
            changed: false,
            stopped: false,
        }
    }

    /// Nothing is driven off anywhere.
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Is there something to judge?
    pub fn has_changed(&self) -> bool {
        self.changed
    }

    /// A node counts so from now on.
    pub fn join(&mut self, standing: &Standing) {
        *self.count(standing) += 1;
    }

    /// A node no longer counts so.
    pub fn leave(&mut self, standing: &Standing) {
        *self.count(standing) -= 1;
        let zone = self.by_name.get(&standing.zone);
        if zone.is_some_and(|zone| zone.well + zone.unwell + zone.excluded == 0) {
            self.by_name.remove(&standing.zone);
        }
    }

    fn count(&mut self, standing: &Standing) -> &mut usize {
        self.changed = true;
        let rate = self.rates.eviction;
        let zone = self.by_name.entry(standing.zone.clone());
        let zone = zone.or_insert_with(|| Zone {
            well: 0,
            unwell: 0,
            excluded: 0,
            state: State::Normal,
            limiter: Limiter {
                rate,
                free_at: Duration::ZERO,
            },
            waiting: VecDeque::new(),
        });
        match standing {
            Standing { excluded: true, .. } => &mut zone.excluded,
            Standing { well: true, .. } => &mut zone.well,
            Standing { well: false, .. } => &mut zone.unwell,
        }
    }

    /// Looks at the zones again, if anything has changed.
    pub fn judge(&mut self, now: Duration) -> Option<Turn> {
        if !std::mem::take(&mut self.changed) {
            return None;
        }
        let rates = self.rates;
        let counted = |zone: &&mut Zone| zone.well + zone.unwell > 0;
        let (mut any, mut all_full) = (false, true);
        for zone in self.by_name.values_mut().filter(counted) {
            zone.state = state(zone.well, zone.unwell, rates);
            any = true;
            all_full &= zone.state == State::Full;
        }
        let stopped = any && all_full;
        for zone in self.by_name.values_mut().filter(counted) {
            let rate = match zone.state {
                _ if stopped => 0.0,
                State::Normal | State::Full => rates.eviction,
                State::Partial if zone.well + zone.unwell > rates.large_zone => {
                    rates.secondary_eviction
                }
                State::Partial => 0.0,
            };
            zone.limiter.swap(now, rate);
        }
        let before = std::mem::replace(&mut self.stopped, stopped);
        match (before, stopped) {
            (false, true) => Some(Turn::Stopped),
            (true, false) => Some(Turn::Resumed),
            _ => None,
        }
    }

    /// A node waits for its turn.
    pub fn wait(&mut self, zone: &str, node: &Arc<str>) {
        if let Some(zone) = self.by_name.get_mut(zone) {
            zone.waiting.push_back(node.clone());
        }
    }

    /// The nodes whose turn it is. Those that no longer `want` it do not count.
    pub fn next(&mut self, now: Duration, mut wants: impl FnMut(&str, &Arc<str>) -> bool) {
        for (name, zone) in &mut self.by_name {
            while zone.limiter.free_at().is_some_and(|at| at <= now) {
                let Some(node) = zone.waiting.pop_front() else {
                    break;
                };
                if wants(name, &node) {
                    zone.limiter.accept(now);
                }
            }
        }
    }

    /// When the next turn is, if somebody waits.
    pub fn next_deadline(&self) -> Option<Duration> {
        let waiting = self
            .by_name
            .values()
            .filter(|zone| !zone.waiting.is_empty());
        waiting.filter_map(|zone| zone.limiter.free_at()).min()
    }
}

fn state(well: usize, unwell: usize, rates: Rates) -> State {
    #[expect(
        clippy::cast_precision_loss,
        reason = "there are never so many nodes that it matters"
    )]
    let part = unwell as f64 / (well + unwell) as f64;
    match (well, unwell) {
        (0, 1..) => State::Full,
        (_, 3..) if part >= rates.unhealthy_zone_threshold => State::Partial,
        _ => State::Normal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_disturbed_when_most_of_it_is_gone() {
        let check = |well, unwell, expected| {
            let found = state(well, unwell, Rates::default());
            assert_eq!(found, expected, "{well} well, {unwell} not");
        };
        check(10, 0, State::Normal);
        check(1, 2, State::Normal);
        check(2, 3, State::Partial);
        check(45, 54, State::Normal);
        check(45, 55, State::Partial);
        check(0, 1, State::Full);
        check(0, 100, State::Full);
    }

    fn standing(zone: &str, well: bool) -> Standing {
        Standing {
            zone: zone.into(),
            excluded: false,
            well,
        }
    }

    /// Zones with so many nodes that are well, and so many that are not and wait for their turn.
    fn zones(counts: &[(&str, usize, usize)]) -> Zones {
        let mut zones = Zones::new(Rates::default());
        for (zone, well, unwell) in counts {
            for _ in 0..*well {
                zones.join(&standing(zone, true));
            }
            for number in 0..*unwell {
                zones.join(&standing(zone, false));
                zones.wait(zone, &format!("{zone}{number}").into());
            }
        }
        zones
    }

    /// Who has a turn within so many seconds, and when.
    fn turns(zones: &mut Zones, seconds: u64) -> Vec<(u64, String)> {
        let mut turns = Vec::new();
        while let Some(at) = zones.next_deadline() {
            if at > Duration::from_secs(seconds) {
                break;
            }
            zones.next(at, |_, node| {
                turns.push((at.as_secs(), node.to_string()));
                true
            });
        }
        turns
    }

    fn check(counts: &[(&str, usize, usize)], seconds: u64, expected: &[(u64, &str)]) {
        let mut zones = zones(counts);
        zones.judge(Duration::ZERO);
        let found = turns(&mut zones, seconds);
        let found: Vec<_> = found
            .iter()
            .map(|(at, node)| (*at, node.as_str()))
            .collect();
        assert_eq!(found, expected, "{counts:?}");
    }

    #[test]
    fn a_zone_that_is_well_loses_a_node_in_ten_seconds() {
        check(&[("a", 9, 3)], 100, &[(0, "a0"), (10, "a1"), (20, "a2")]);
        check(&[("a", 9, 1), ("b", 5, 1)], 100, &[(0, "a0"), (0, "b0")]);
    }

    #[test]
    fn a_zone_that_is_disturbed_loses_none_or_if_large_one_in_a_hundred_seconds() {
        check(&[("a", 2, 4)], 1_000_000, &[]);
        check(&[("a", 22, 28)], 1_000_000, &[]);
        check(
            &[("a", 20, 31)],
            250,
            &[(0, "a0"), (100, "a1"), (200, "a2")],
        );
    }

    #[test]
    fn a_zone_that_is_gone_loses_its_nodes_unless_all_are() {
        check(&[("a", 0, 2), ("b", 1, 0)], 100, &[(0, "a0"), (10, "a1")]);
        check(&[("a", 0, 2), ("b", 0, 1)], 1_000_000, &[]);
        check(&[("a", 0, 1)], 1_000_000, &[]);
    }

    #[test]
    fn nodes_that_do_not_count_do_not_keep_a_cluster_going() {
        let mut zones = zones(&[("a", 0, 1)]);
        zones.join(&Standing {
            excluded: true,
            ..standing("a", true)
        });
        assert_eq!(zones.judge(Duration::ZERO), Some(Turn::Stopped));
        zones.join(&standing("a", true));
        assert_eq!(zones.judge(Duration::ZERO), Some(Turn::Resumed));
        assert_eq!(zones.judge(Duration::ZERO), None);
    }

    #[test]
    fn after_a_stop_the_first_waits_as_long_as_any() {
        let mut zones = zones(&[("a", 0, 2)]);
        assert_eq!(zones.judge(Duration::ZERO), Some(Turn::Stopped));
        assert_eq!(zones.next_deadline(), None);
        zones.leave(&standing("a", false));
        zones.join(&standing("a", true));
        let later = Duration::from_secs(7);
        assert_eq!(zones.judge(later), Some(Turn::Resumed));
        assert_eq!(zones.next_deadline(), Some(Duration::from_secs(17)));
    }

    #[test]
    fn who_no_longer_wants_its_turn_takes_nobody_elses() {
        let mut zones = zones(&[("a", 9, 3)]);
        zones.judge(Duration::ZERO);
        let mut asked = Vec::new();
        zones.next(Duration::ZERO, |_, node| {
            asked.push(node.to_string());
            &**node != "a0"
        });
        assert_eq!(asked, ["a0", "a1"]);
        assert_eq!(zones.next_deadline(), Some(Duration::from_secs(10)));
    }

    #[test]
    fn zones_without_nodes_are_forgotten() {
        let mut zones = zones(&[("a", 1, 0)]);
        zones.leave(&standing("a", true));
        assert!(zones.by_name.is_empty());
        assert_eq!(zones.judge(Duration::ZERO), None);
    }
}
