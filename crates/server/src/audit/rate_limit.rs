//! Refused requests without a valid credential. Anybody who reaches the port can send them, so they must not push other
//! lines out of the log: in each window the first ones are recorded; the others are counted, and one line says how many
//! there were and where they came from.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// How often what was counted is written.
pub(super) const WINDOW: Duration = Duration::from_mins(1);
/// Requests that are recorded in a window: with the line that counts the others, such requests fill the 500 MiB of a log with
/// default sizes in three weeks at the soonest.
const RECORDED_MAX: u32 = 20;
/// The same for one address, so that one does not hide the others.
const RECORDED_PER_ADDRESS_MAX: u32 = 5;
/// Addresses that are counted apart, which bounds memory. Requests from others are part of the sum alone.
const ADDRESSES_MAX: usize = 256;
/// Addresses that a line names.
const NAMED_MAX: usize = 10;

/// Requests that were counted and not recorded.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Suppressed {
    pub(super) requests: u64,
    /// The addresses with the most requests, the first one with the most of all.
    pub(super) sources: Vec<(IpAddr, u64)>,
}

#[derive(Clone, Copy, Default)]
struct Source {
    recorded: u32,
    suppressed: u64,
}

/// See the [module](self).
#[derive(Default)]
pub(super) struct RateLimit {
    window_began: Option<Instant>,
    recorded: u32,
    /// In this window, and in earlier ones that no line reports yet.
    suppressed: u64,
    /// Some of these are of an earlier window.
    is_due: bool,
    sources: BTreeMap<IpAddr, Source>,
}

impl RateLimit {
    /// Whether a request is to be recorded; otherwise it is counted.
    pub(super) fn admit(&mut self, address: Option<IpAddr>, now: Instant) -> bool {
        if self.is_over(now) {
            self.recorded = 0;
            for source in self.sources.values_mut() {
                source.recorded = 0;
            }
            self.sources.retain(|_, source| source.suppressed > 0);
            (self.window_began, self.is_due) = (None, self.suppressed > 0);
        }
        self.window_began.get_or_insert(now);
        let has_room = self.sources.len() < ADDRESSES_MAX;
        let source = match address {
            Some(address) if has_room || self.sources.contains_key(&address) => {
                Some(self.sources.entry(address).or_default())
            }
            _ => None,
        };
        let by_source = source.as_ref().map_or(0, |source| source.recorded);
        let records = self.recorded < RECORDED_MAX && by_source < RECORDED_PER_ADDRESS_MAX;
        self.recorded += u32::from(records);
        self.suppressed += u64::from(!records);
        if let Some(source) = source {
            source.recorded += u32::from(records);
            source.suppressed += u64::from(!records);
        }
        records
    }

    /// The counts, once the window is over or the log is closed.
    pub(super) fn take(&mut self, now: Instant, closing: bool) -> Option<Suppressed> {
        let is_due = closing || self.is_due || self.is_over(now);
        if self.suppressed == 0 || !is_due {
            return None;
        }
        self.is_due = false;
        let counts = self.sources.iter_mut();
        let counts = counts.map(|(address, source)| {
            let suppressed = std::mem::take(&mut source.suppressed);
            (*address, suppressed)
        });
        let mut sources: Vec<(IpAddr, u64)> = counts.filter(|(_, count)| *count > 0).collect();
        sources.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        sources.truncate(NAMED_MAX);
        Some(Suppressed {
            requests: std::mem::take(&mut self.suppressed),
            sources,
        })
    }

    fn is_over(&self, now: Instant) -> bool {
        let began = self.window_began;
        began.is_some_and(|began| now.saturating_duration_since(began) >= WINDOW)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u32) -> IpAddr {
        std::net::Ipv4Addr::from_bits(0xc000_0200 + number).into()
    }

    #[test]
    fn the_first_ones_of_a_window_are_recorded_and_the_others_counted() {
        let (mut rate_limit, start) = (RateLimit::default(), Instant::now());
        let mut send = |from: u32, count: u32, now: Instant| {
            let admitted = (0..count).filter(|_| rate_limit.admit(Some(address(from)), now));
            let admitted = admitted.count();
            (admitted, rate_limit.take(now, false))
        };
        assert_eq!(send(1, 100, start), (5, None));
        assert_eq!(send(2, 6, start), (5, None));
        // However many addresses there are, the sum is bounded.
        let others: usize = (3..1_000).map(|from| send(from, 1, start).0).sum();
        assert_eq!(others, 10);
        // It goes on in the next window.
        let (admitted, counted) = send(2, 7, start + WINDOW);
        assert_eq!(admitted, 5);
        let counted = counted.unwrap_or_default();
        assert_eq!(counted.requests, 95 + 1 + 987 + 2);
        assert_eq!(counted.sources[..1], [(address(1), 95)]);
        assert_eq!(counted.sources.len(), NAMED_MAX);
    }

    #[test]
    fn what_was_counted_is_taken_once_when_the_window_is_over_or_the_log_is_closed() {
        for (later, closing) in [(WINDOW, false), (Duration::ZERO, true)] {
            let (mut rate_limit, start) = (RateLimit::default(), Instant::now());
            assert_eq!(rate_limit.take(start, true), None);
            for _ in 0..7 {
                rate_limit.admit(None, start);
                rate_limit.admit(Some(address(1)), start);
            }
            assert_eq!(rate_limit.take(start, false), None);
            let counted = rate_limit.take(start + later, closing).unwrap_or_default();
            assert_eq!(counted.requests, 2);
            assert_eq!(counted.sources, [(address(1), 2)]);
            assert_eq!(rate_limit.take(start + later, closing), None);
        }
    }
}
