//! Node outages of a scenario: when nodes are silent and when they reboot, counted from the start of the simulation.

use std::time::Duration;

use serde::Deserialize;

use super::{DurationRange, NodeRule, Scenario};
use crate::seeded_random::SeededRandom;

/// Duration of an outage without a `for`.
const DEFAULT_DURATION: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutageKind {
    /// The node sends neither heartbeats nor status; its pods keep running.
    Silent,
    /// The node is down; its pods are started again.
    Reboot,
}

/// When an outage happens, and for how long.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "OutageFields")]
pub struct Outage {
    at: Vec<DurationRange>,
    /// The time between the end of one outage and the begin of the next.
    every: Option<DurationRange>,
    duration: DurationRange,
}

#[derive(Debug, thiserror::Error)]
enum InvalidOutage {
    #[error("one of `at` and `every` is required")]
    NoTime,
    #[error("`every` must be longer than zero")]
    ZeroPeriod,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OutageFields {
    #[serde(default)]
    at: Vec<DurationRange>,
    every: Option<DurationRange>,
    #[serde(rename = "for")]
    duration: Option<DurationRange>,
}

impl TryFrom<OutageFields> for Outage {
    type Error = InvalidOutage;

    fn try_from(fields: OutageFields) -> Result<Self, InvalidOutage> {
        if fields.at.is_empty() && fields.every.is_none() {
            return Err(InvalidOutage::NoTime);
        }
        if fields.every.is_some_and(|every| every.min.is_zero()) {
            return Err(InvalidOutage::ZeroPeriod);
        }
        let default = DurationRange::exactly(DEFAULT_DURATION);
        Ok(Self {
            at: fields.at,
            every: fields.every,
            duration: fields.duration.unwrap_or(default),
        })
    }
}

impl Outage {
    /// Begin and end of the first outage that begins at `from` or later.
    fn next(&self, from: Duration, random: SeededRandom) -> Option<(Duration, Duration)> {
        let duration = |number: u64| self.duration.draw(random.named("for").numbered(number));
        let planned = self.at.iter().enumerate().map(|(number, at)| {
            let number = number as u64;
            let begin = at.draw(random.named("at").numbered(number));
            (begin, begin + duration(number))
        });
        let planned = planned.filter(|(begin, _)| *begin >= from).min();
        let periodic = self.every.map(|every| {
            let mut end = Duration::ZERO;
            for number in 0.. {
                let begin = end + every.draw(random.named("every").numbered(number));
                end = begin + duration(u64::MAX - number);
                if begin >= from {
                    return (begin, end);
                }
            }
            unreachable!("`every` is longer than zero, so that the times grow")
        });
        planned.into_iter().chain(periodic).min()
    }
}

impl Scenario {
    /// Begin, end and kind of the node's first outage that begins at `from` or later.
    pub fn next_outage(
        &self,
        name: &str,
        from: Duration,
        random: SeededRandom,
    ) -> Option<(Duration, Duration, OutageKind)> {
        let of_rule = |(number, rule): (usize, &NodeRule)| {
            let random = random.numbered(number as u64).named(name);
            let outages = [
                (rule.silent.as_ref(), OutageKind::Silent, "silent"),
                (rule.reboot.as_ref(), OutageKind::Reboot, "reboot"),
            ];
            outages.map(|(outage, kind, what)| {
                let (begin, end) = outage?.next(from, random.named(what))?;
                Some((begin, end, kind))
            })
        };
        let all = self.node_rules(name, random).enumerate();
        all.flat_map(of_rule)
            .flatten()
            .min_by_key(|(begin, ..)| *begin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Begin, end and kind of the outages in the first `seconds`.
    fn outages(scenario: &str, seconds: u64, seed: u64) -> Vec<(u64, u64, OutageKind)> {
        let scenario = Scenario::parse(scenario).unwrap();
        let mut from = Duration::ZERO;
        let mut all = Vec::new();
        while let Some((begin, end, kind)) =
            scenario.next_outage("n", from, SeededRandom::new(seed))
        {
            if begin.as_secs() > seconds {
                break;
            }
            all.push((begin.as_secs(), end.as_secs(), kind));
            from = end.max(begin + Duration::from_millis(1));
        }
        all
    }

    #[test]
    fn outages_come_when_they_are_due() {
        use OutageKind::{Reboot, Silent};
        let rules = "nodes:\n- {silent: {at: [60s, 10s], for: 5s}}\n- {reboot: {every: 40s, for: 10s}}\n\
                     - {name: other, silent: {at: [1s]}}\n";
        let expected = [
            (10, 15, Silent),
            (40, 50, Reboot),
            (60, 65, Silent),
            (90, 100, Reboot),
        ];
        assert_eq!(outages(rules, 100, 1), expected);
    }

    #[test]
    fn random_times_depend_on_the_seed_alone() {
        let rules = "nodes: [{silent: {every: 10s-100s, for: 1s-9s}}]";
        let first = outages(rules, 1000, 1);
        assert!((8..90).contains(&first.len()), "{first:?}");
        assert_eq!(first, outages(rules, 1000, 1));
        assert_ne!(first, outages(rules, 1000, 2));
    }
}
