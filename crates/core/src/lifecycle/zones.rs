//! Limits the rate of evictions per zone: one node after the other, more slowly or not at all where most nodes fail
//! together, since then the network or this controller has probably failed.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use kennel_types::Monotonic;

/// The defaults are upstream's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Nodes per second in a healthy zone.
    pub eviction: f64,
    /// Nodes per second in a large unhealthy zone.
    pub secondary_eviction: f64,
    /// The share of unhealthy nodes that makes a zone unhealthy.
    pub unhealthy_zone_threshold: f64,
    /// A zone with more nodes is large. A smaller unhealthy zone is not evicted from.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Normal,
    /// Most nodes are unhealthy.
    Partial,
    /// All nodes are unhealthy.
    Full,
}

/// A change of the whole cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterChange {
    /// No node is healthy: evictions stop.
    EvictionsStopped,
    /// Some node is healthy again: the others get a new grace period.
    EvictionsResumed,
}

/// A rate limiter without burst.
#[derive(Debug)]
struct Limiter {
    rate: f64,
    free_at: Monotonic,
}

impl Limiter {
    fn interval(rate: f64) -> Option<Duration> {
        (rate > 0.0)
            .then(|| Duration::try_from_secs_f64(1.0 / rate).ok())
            .flatten()
    }

    fn free_at(&self) -> Option<Monotonic> {
        Self::interval(self.rate).map(|_| self.free_at)
    }

    fn accept(&mut self, now: Monotonic) -> bool {
        let free = self.free_at().is_some_and(|at| at <= now);
        if let Some(interval) = Self::interval(self.rate).filter(|_| free) {
            self.free_at = now + interval;
        }
        free
    }

    /// Continues at another rate. If it was not free, a new interval begins.
    fn set_rate(&mut self, now: Monotonic, rate: f64) {
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
    healthy: usize,
    unhealthy: usize,
    excluded: usize,
    state: State,
    limiter: Limiter,
    queue: VecDeque<Arc<str>>,
}

/// How a node counts in its zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneMembership {
    pub zone: Arc<str>,
    /// Not counted.
    pub excluded: bool,
    pub healthy: bool,
}

#[derive(Debug)]
pub struct Zones {
    rates: Rates,
    by_name: BTreeMap<Arc<str>, Zone>,
    changed: bool,
    stopped: bool,
}

impl Zones {
    pub fn new(rates: Rates) -> Self {
        Self {
            rates,
            by_name: BTreeMap::new(),
            changed: false,
            stopped: false,
        }
    }

    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    pub fn has_changed(&self) -> bool {
        self.changed
    }

    pub fn add(&mut self, membership: &ZoneMembership) {
        *self.count(membership) += 1;
    }

    pub fn remove(&mut self, membership: &ZoneMembership) {
        *self.count(membership) -= 1;
        let zone = self.by_name.get(&membership.zone);
        if zone.is_some_and(|zone| zone.healthy + zone.unhealthy + zone.excluded == 0) {
            self.by_name.remove(&membership.zone);
        }
    }

    fn count(&mut self, membership: &ZoneMembership) -> &mut usize {
        self.changed = true;
        let rate = self.rates.eviction;
        let zone = self.by_name.entry(membership.zone.clone());
        let zone = zone.or_insert_with(|| Zone {
            healthy: 0,
            unhealthy: 0,
            excluded: 0,
            state: State::Normal,
            limiter: Limiter {
                rate,
                free_at: Monotonic::START,
            },
            queue: VecDeque::new(),
        });
        match membership {
            ZoneMembership { excluded: true, .. } => &mut zone.excluded,
            ZoneMembership { healthy: true, .. } => &mut zone.healthy,
            ZoneMembership { healthy: false, .. } => &mut zone.unhealthy,
        }
    }

    /// Recomputes the states and rates of all zones, if anything has changed.
    pub fn evaluate(&mut self, now: Monotonic) -> Option<ClusterChange> {
        if !std::mem::take(&mut self.changed) {
            return None;
        }
        let rates = self.rates;
        let counted = |zone: &&mut Zone| zone.healthy + zone.unhealthy > 0;
        let (mut any, mut all_full) = (false, true);
        for zone in self.by_name.values_mut().filter(counted) {
            zone.state = state(zone.healthy, zone.unhealthy, rates);
            any = true;
            all_full &= zone.state == State::Full;
        }
        let stopped = any && all_full;
        for zone in self.by_name.values_mut().filter(counted) {
            let rate = match zone.state {
                _ if stopped => 0.0,
                State::Normal | State::Full => rates.eviction,
                State::Partial if zone.healthy + zone.unhealthy > rates.large_zone => {
                    rates.secondary_eviction
                }
                State::Partial => 0.0,
            };
            zone.limiter.set_rate(now, rate);
        }
        let before = std::mem::replace(&mut self.stopped, stopped);
        match (before, stopped) {
            (false, true) => Some(ClusterChange::EvictionsStopped),
            (true, false) => Some(ClusterChange::EvictionsResumed),
            _ => None,
        }
    }

    /// Queues a node for eviction.
    pub fn enqueue(&mut self, zone: &str, node: &Arc<str>) {
        if let Some(zone) = self.by_name.get_mut(zone) {
            zone.queue.push_back(node.clone());
        }
    }

    /// Passes the nodes that the rates allow now to `grant`. A node for which it returns false uses no budget.
    pub fn dequeue(&mut self, now: Monotonic, mut grant: impl FnMut(&str, &Arc<str>) -> bool) {
        for (name, zone) in &mut self.by_name {
            while zone.limiter.free_at().is_some_and(|at| at <= now) {
                let Some(node) = zone.queue.pop_front() else {
                    break;
                };
                if grant(name, &node) {
                    zone.limiter.accept(now);
                }
            }
        }
    }

    /// When the next queued node may be evicted from.
    pub fn next_deadline(&self) -> Option<Monotonic> {
        let queued = self.by_name.values().filter(|zone| !zone.queue.is_empty());
        queued.filter_map(|zone| zone.limiter.free_at()).min()
    }
}

fn state(healthy: usize, unhealthy: usize, rates: Rates) -> State {
    #[expect(clippy::cast_precision_loss, reason = "the number of nodes is small")]
    let share = unhealthy as f64 / (healthy + unhealthy) as f64;
    match (healthy, unhealthy) {
        (0, 1..) => State::Full,
        (_, 3..) if share >= rates.unhealthy_zone_threshold => State::Partial,
        _ => State::Normal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_second(seconds: u64) -> Monotonic {
        Monotonic::since_start(Duration::from_secs(seconds))
    }

    #[test]
    fn a_zone_is_unhealthy_when_most_of_its_nodes_are() {
        let check = |healthy, unhealthy, expected| {
            let found = state(healthy, unhealthy, Rates::default());
            assert_eq!(found, expected, "{healthy} healthy, {unhealthy} not");
        };
        check(10, 0, State::Normal);
        check(1, 2, State::Normal);
        check(2, 3, State::Partial);
        check(45, 54, State::Normal);
        check(45, 55, State::Partial);
        check(0, 1, State::Full);
        check(0, 100, State::Full);
    }

    fn membership(zone: &str, healthy: bool) -> ZoneMembership {
        ZoneMembership {
            zone: zone.into(),
            excluded: false,
            healthy,
        }
    }

    /// Zones with these numbers of healthy nodes, and of unhealthy ones that are queued.
    fn zones(counts: &[(&str, usize, usize)]) -> Zones {
        let mut zones = Zones::new(Rates::default());
        for (zone, healthy, unhealthy) in counts {
            for _ in 0..*healthy {
                zones.add(&membership(zone, true));
            }
            for number in 0..*unhealthy {
                zones.add(&membership(zone, false));
                zones.enqueue(zone, &format!("{zone}{number}").into());
            }
        }
        zones
    }

    /// The nodes that are granted within this many seconds, and when.
    fn grants(zones: &mut Zones, seconds: u64) -> Vec<(u64, String)> {
        let mut grants = Vec::new();
        while let Some(at) = zones.next_deadline() {
            if at > at_second(seconds) {
                break;
            }
            zones.dequeue(at, |_, node| {
                grants.push((at.elapsed().as_secs(), node.to_string()));
                true
            });
        }
        grants
    }

    fn check(counts: &[(&str, usize, usize)], seconds: u64, expected: &[(u64, &str)]) {
        let mut zones = zones(counts);
        zones.evaluate(Monotonic::START);
        let found = grants(&mut zones, seconds);
        let found: Vec<_> = found
            .iter()
            .map(|(at, node)| (*at, node.as_str()))
            .collect();
        assert_eq!(found, expected, "{counts:?}");
    }

    #[test]
    fn a_healthy_zone_is_evicted_from_every_ten_seconds() {
        check(&[("a", 9, 3)], 100, &[(0, "a0"), (10, "a1"), (20, "a2")]);
        check(&[("a", 9, 1), ("b", 5, 1)], 100, &[(0, "a0"), (0, "b0")]);
    }

    #[test]
    fn an_unhealthy_zone_is_not_evicted_from_unless_it_is_large() {
        check(&[("a", 2, 4)], 1_000_000, &[]);
        check(&[("a", 22, 28)], 1_000_000, &[]);
        check(
            &[("a", 20, 31)],
            250,
            &[(0, "a0"), (100, "a1"), (200, "a2")],
        );
    }

    #[test]
    fn a_zone_that_is_down_is_evicted_from_unless_all_are_down() {
        check(&[("a", 0, 2), ("b", 1, 0)], 100, &[(0, "a0"), (10, "a1")]);
        check(&[("a", 0, 2), ("b", 0, 1)], 1_000_000, &[]);
        check(&[("a", 0, 1)], 1_000_000, &[]);
    }

    #[test]
    fn excluded_nodes_do_not_keep_evictions_going() {
        let mut zones = zones(&[("a", 0, 1)]);
        zones.add(&ZoneMembership {
            excluded: true,
            ..membership("a", true)
        });
        assert_eq!(
            zones.evaluate(Monotonic::START),
            Some(ClusterChange::EvictionsStopped)
        );
        zones.add(&membership("a", true));
        assert_eq!(
            zones.evaluate(Monotonic::START),
            Some(ClusterChange::EvictionsResumed)
        );
        assert_eq!(zones.evaluate(Monotonic::START), None);
    }

    #[test]
    fn after_a_stop_the_first_node_waits_a_full_interval() {
        let mut zones = zones(&[("a", 0, 2)]);
        assert_eq!(
            zones.evaluate(Monotonic::START),
            Some(ClusterChange::EvictionsStopped)
        );
        assert_eq!(zones.next_deadline(), None);
        zones.remove(&membership("a", false));
        zones.add(&membership("a", true));
        let later = at_second(7);
        assert_eq!(zones.evaluate(later), Some(ClusterChange::EvictionsResumed));
        assert_eq!(zones.next_deadline(), Some(at_second(17)));
    }

    #[test]
    fn a_node_that_declines_uses_no_budget() {
        let mut zones = zones(&[("a", 9, 3)]);
        zones.evaluate(Monotonic::START);
        let mut offered = Vec::new();
        zones.dequeue(Monotonic::START, |_, node| {
            offered.push(node.to_string());
            &**node != "a0"
        });
        assert_eq!(offered, ["a0", "a1"]);
        assert_eq!(zones.next_deadline(), Some(at_second(10)));
    }

    #[test]
    fn empty_zones_are_removed() {
        let mut zones = zones(&[("a", 1, 0)]);
        zones.remove(&membership("a", true));
        assert!(zones.by_name.is_empty());
        assert_eq!(zones.evaluate(Monotonic::START), None);
    }
}
