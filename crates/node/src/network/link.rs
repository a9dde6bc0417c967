//! Whether the link of this node carries packets of pods, as probes find out: when the next one is due, and what follows from its
//! result. Knows nothing of routes.

use std::net::Ipv4Addr;
use std::time::Duration;

use kennel_client::backoff::{Backoff, Policy};
use kennel_core::pod_network::Member;
use kennel_network::{Error, Network, Probed};
use tokio::task::{JoinError, JoinHandle};
use tokio::time::Instant;

/// Between probes of a link that has not answered.
const RETRY: Policy = Policy::exponential(Duration::from_secs(1), Duration::from_mins(1));
/// Probes in a row that must fail before a link is given up: each change of a link is an event for all agents.
const FAILURES_MAX: u32 = 3;
/// After a failed probe, the next one comes so many times as fast.
const RECHECK_DIVISOR: u32 = 10;

/// See the [module](self).
pub(super) struct Link {
    /// The node's address and link that it is about.
    of: Option<String>,
    direct: Option<bool>,
    /// Probes of a link that carried packets which have failed in a row.
    failures: u32,
    recheck: Duration,
    retry: Backoff,
    next: Instant,
    running: Option<Running>,
    /// A node has come since the running probe began.
    again: bool,
}

type Running = JoinHandle<Result<Probed, Error>>;
type Outcome = Result<Result<Probed, Error>, JoinError>;

impl Link {
    /// `recheck` is the shortest time between probes of a link that carries packets.
    pub(super) fn new(recheck: Duration) -> Self {
        Self {
            of: None,
            direct: None,
            failures: 0,
            recheck,
            retry: Backoff::new(RETRY),
            next: Instant::now(),
            running: None,
            again: false,
        }
    }

    /// Begins anew if the node has moved. `before` is what an earlier agent found, which holds until a probe says otherwise.
    pub(super) fn follow(&mut self, of: &str, before: impl FnOnce() -> Option<bool>) {
        if self.of.as_deref() == Some(of) {
            return;
        }
        let is_first = self.of.is_none();
        *self = Self::new(self.recheck);
        self.of = Some(of.to_owned());
        self.direct = is_first.then(before).flatten();
    }

    pub(super) fn direct(&self) -> Option<bool> {
        self.direct
    }

    /// When to probe next, unless a probe runs.
    pub(super) fn due(&self) -> Option<Instant> {
        self.running.is_none().then_some(self.next)
    }

    /// A new node may answer where the others did not.
    pub(super) fn on_new_node(&mut self) {
        if self.direct == Some(true) {
            return;
        }
        self.retry.reset();
        self.next = Instant::now();
        self.again = self.running.is_some();
    }

    /// Starts a probe of some of these nodes: of each, its address and that of the probe. It takes seconds if nobody answers, while
    /// routes to other nodes must go on being set up.
    pub(super) fn start(&mut self, own: Member, mut peers: Vec<(Ipv4Addr, Ipv4Addr)>) {
        fastrand::shuffle(&mut peers);
        self.running = Some(tokio::spawn(
            async move { Network::probe(&own, &peers).await },
        ));
    }

    /// Returns when the running probe has ended.
    pub(super) async fn ended(&mut self) -> Outcome {
        match &mut self.running {
            Some(running) => running.await,
            None => std::future::pending().await,
        }
    }

    pub(super) fn on_ended(&mut self, outcome: Outcome) {
        self.running = None;
        let before = self.direct;
        let wait = match outcome {
            Ok(Ok(probed)) => self.on_probed(probed),
            Ok(Err(error)) => {
                tracing::warn!("{error}");
                self.retry.next_delay()
            }
            Err(error) => {
                tracing::warn!("probing the link failed: {error}");
                self.retry.next_delay()
            }
        };
        let again = std::mem::take(&mut self.again);
        self.next = Instant::now() + if again { Duration::ZERO } else { wait };
        if let Some(direct) = self.direct.filter(|_| before != self.direct) {
            let what = if direct { "carries" } else { "does not carry" };
            let of = self.of.as_deref().unwrap_or_default();
            tracing::info!("the link of {of} {what} packets of pods");
        }
    }

    /// Returns how long to wait for the next probe.
    fn on_probed(&mut self, probed: Probed) -> Duration {
        let soon = self.recheck / RECHECK_DIVISOR;
        match (probed, self.direct) {
            (Probed::Carries, _) => {
                (self.direct, self.failures) = (Some(true), 0);
                self.retry.reset();
                // Not all nodes of a link at once.
                self.recheck.mul_f64(1.0 + fastrand::f64())
            }
            // The other nodes may be down, which says nothing of the link.
            (Probed::NoNode, Some(true)) => soon,
            (Probed::Drops, Some(true)) if self.failures + 1 < FAILURES_MAX => {
                self.failures += 1;
                soon
            }
            (Probed::NoNode | Probed::Drops, _) => {
                (self.direct, self.failures) = (Some(false), 0);
                self.retry.next_delay()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECHECK: Duration = Duration::from_mins(5);

    fn waits(link: &mut Link, probed: Probed, direct: bool, wait: std::ops::Range<u64>) {
        let found = link.on_probed(probed);
        let expected = Duration::from_secs(wait.start)..Duration::from_secs(wait.end);
        assert_eq!(link.direct, Some(direct), "{probed:?}");
        assert!(expected.contains(&found), "{probed:?}: {found:?}");
    }

    #[test]
    fn n1_2_a_direct_link_is_probed_seldom_and_given_up_after_failures_in_a_row() {
        use Probed::{Carries, Drops, NoNode};
        let mut link = Link::new(RECHECK);
        waits(&mut link, Drops, false, 0..2);
        waits(&mut link, NoNode, false, 0..4);
        waits(&mut link, Carries, true, 300..601);
        // One failure is none, and nodes that are down do not count.
        waits(&mut link, Drops, true, 30..31);
        waits(&mut link, Drops, true, 30..31);
        waits(&mut link, Carries, true, 300..601);
        waits(&mut link, Drops, true, 30..31);
        waits(&mut link, NoNode, true, 30..31);
        waits(&mut link, Drops, true, 30..31);
        waits(&mut link, Drops, false, 0..2);
        waits(&mut link, Carries, true, 300..601);
    }

    #[test]
    fn what_an_earlier_agent_found_holds_for_its_address_until_probes_say_otherwise() {
        let mut link = Link::new(RECHECK);
        link.follow("10.0.0.1/24", || Some(true));
        waits(&mut link, Probed::NoNode, true, 30..31);
        waits(&mut link, Probed::Drops, true, 30..31);
        link.follow("10.0.0.1/24", || None);
        assert_eq!(link.direct(), Some(true));
        link.follow("10.0.1.1/24", || Some(true));
        assert_eq!(link.direct(), None);
    }
}
