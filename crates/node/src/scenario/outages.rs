//! When nodes are silent and when they reboot, as times since the simulation began.

use std::time::Duration;

use serde::Deserialize;

use super::{Scenario, Span};
use crate::dice::Dice;

/// How long an outage lasts if nothing is said.
const USUAL: Duration = Duration::from_secs(30);

/// What makes a node be silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutageKind {
    /// It is not heard of; its pods go on.
    Silent,
    /// It is down; its pods begin again.
    Reboot,
}

/// When it happens, and for how long.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Written")]
pub struct Outage {
    /// At these times.
    at: Vec<Span>,
    /// Again and again, with so long between the end of one and the next.
    every: Option<Span>,
    lasts: Span,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    at: Vec<Span>,
    every: Option<Span>,
    #[serde(rename = "for")]
    lasts: Option<Span>,
}

impl TryFrom<Written> for Outage {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        if written.at.is_empty() && written.every.is_none() {
            return Err("one of `at` and `every` must say when it happens".to_owned());
        }
        if written.every.is_some_and(|every| every.least.is_zero()) {
            return Err("`every` must be longer than nothing".to_owned());
        }
        Ok(Self {
            at: written.at,
            every: written.every,
            lasts: written.lasts.unwrap_or(Span::of(USUAL)),
        })
    }
}

impl Outage {
    /// The first that begins at this time or later, and when it ends.
    fn next(&self, from: Duration, dice: Dice) -> Option<(Duration, Duration)> {
        let lasts = |number: u64| self.lasts.draw(dice.named("for").numbered(number));
        let planned = self.at.iter().enumerate().map(|(number, at)| {
            let number = number as u64;
            let begin = at.draw(dice.named("at").numbered(number));
            (begin, begin + lasts(number))
        });
        let planned = planned.filter(|(begin, _)| *begin >= from).min();
        let again = self.every.map(|every| {
            let mut end = Duration::ZERO;
            for number in 0.. {
                let begin = end + every.draw(dice.named("every").numbered(number));
                end = begin + lasts(u64::MAX - number);
                if begin >= from {
                    return (begin, end);
                }
            }
            unreachable!("`every` is longer than nothing, so that the times grow")
        });
        planned.into_iter().chain(again).min()
    }
}

impl Scenario {
    /// The node's first outage that begins at this time or later, and when it ends.
    pub fn next_outage(
        &self,
        name: &str,
        from: Duration,
        dice: Dice,
    ) -> Option<(Duration, Duration, OutageKind)> {
        let of_rule = |(number, rule): (usize, &super::NodeRule)| {
            let dice = dice.numbered(number as u64).named(name);
            let outages = [
                (rule.silent.as_ref(), OutageKind::Silent, "silent"),
                (rule.reboot.as_ref(), OutageKind::Reboot, "reboot"),
            ];
            outages.map(|(outage, kind, what)| {
                let (begin, end) = outage?.next(from, dice.named(what))?;
                Some((begin, end, kind))
            })
        };
        let all = self.of_node(name, dice).enumerate().flat_map(of_rule);
        all.flatten().min_by_key(|(begin, ..)| *begin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The outages of a node in its first so many seconds, as begin, end and kind.
    fn outages(scenario: &str, seconds: u64, seed: u64) -> Vec<(u64, u64, OutageKind)> {
        let scenario = Scenario::parse(scenario).unwrap();
        let mut from = Duration::ZERO;
        let mut all = Vec::new();
        while let Some((begin, end, kind)) = scenario.next_outage("n", from, Dice::new(seed)) {
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
        let seen = outages(rules, 1000, 1);
        assert!((8..90).contains(&seen.len()), "{seen:?}");
        assert_eq!(seen, outages(rules, 1000, 1));
        assert_ne!(seen, outages(rules, 1000, 2));
    }
}
