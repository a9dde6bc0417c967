//! The leader fence: whether this process may write now. Open for ever, or only while it certainly holds a lease.
//!
//! A write that is in flight when the fence closes is given up: its client waits no longer and cancels the request. What a
//! server has received by then it may still apply. That is why the fence closes some time before the lease expires.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// The value of a fence that never closes.
const FOR_EVER: u64 = u64::MAX;

/// See the [module](self). Clones share their state.
#[derive(Clone, Debug)]
pub struct Fence {
    /// Zero of `open_until`.
    origin: Instant,
    /// Milliseconds after the origin until which the fence is open.
    open_until: Arc<AtomicU64>,
    /// Notified when the fence is opened, prolonged or closed.
    changed: Arc<Notify>,
}

impl Fence {
    /// Open for ever, for clients that need no lease.
    pub fn open() -> Self {
        Self::until(FOR_EVER)
    }

    /// Closed until [`open_until`](Self::open_until).
    pub fn closed() -> Self {
        Self::until(0)
    }

    fn until(millis: u64) -> Self {
        Self {
            origin: Instant::now(),
            open_until: Arc::new(AtomicU64::new(millis)),
            changed: Arc::default(),
        }
    }

    /// Opens the fence until the given time. Never shortens the time it is open.
    pub fn open_until(&self, until: Instant) {
        let millis = self.millis(until).min(FOR_EVER - 1);
        self.open_until.fetch_max(millis, Ordering::SeqCst);
        self.changed.notify_waiters();
    }

    pub fn close(&self) {
        self.open_until.store(0, Ordering::SeqCst);
        self.changed.notify_waiters();
    }

    /// Whether a write may start now.
    pub fn is_open(&self) -> bool {
        match self.open_until.load(Ordering::SeqCst) {
            FOR_EVER => true,
            until => self.millis(Instant::now()) < until,
        }
    }

    /// Waits until the fence is open.
    pub async fn wait_open(&self) {
        loop {
            let changed = self.changed.notified();
            if self.is_open() {
                return;
            }
            changed.await;
        }
    }

    /// Waits until the fence is closed. Renewals meanwhile prolong that.
    pub async fn wait_closed(&self) {
        loop {
            let changed = self.changed.notified();
            let until = match self.open_until.load(Ordering::SeqCst) {
                FOR_EVER => return std::future::pending().await,
                millis => self.origin + Duration::from_millis(millis),
            };
            if until <= Instant::now() {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep_until(until) => {}
                () = changed => {}
            }
        }
    }

    fn millis(&self, at: Instant) -> u64 {
        let after: Duration = at.saturating_duration_since(self.origin);
        u64::try_from(after.as_millis()).unwrap_or(FOR_EVER - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_fence_closes_when_its_time_is_over_and_not_before() {
        let fence = Fence::closed();
        let other = fence.clone();
        assert!(!fence.is_open());
        fence.open_until(Instant::now() + Duration::from_secs(10));
        tokio::time::advance(Duration::from_millis(9_999)).await;
        assert!(other.is_open());
        fence.open_until(Instant::now());
        assert!(other.is_open(), "a shorter time does not shorten it");
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(!other.is_open());
        fence.open_until(Instant::now() + Duration::from_secs(10));
        other.close();
        assert!(!fence.is_open());
    }

    #[tokio::test(start_paused = true)]
    async fn renewals_prolong_the_wait_for_the_end() {
        let fence = Fence::closed();
        fence.wait_closed().await;
        let start = Instant::now();
        fence.open_until(start + Duration::from_secs(10));
        let waiting = tokio::spawn({
            let fence = fence.clone();
            async move { fence.wait_closed().await }
        });
        tokio::time::sleep(Duration::from_secs(9)).await;
        fence.open_until(start + Duration::from_secs(19));
        waiting.await.unwrap();
        assert_eq!(start.elapsed(), Duration::from_secs(19));
    }

    #[tokio::test(start_paused = true)]
    async fn waiters_notice_at_once_that_a_fence_opens_or_closes() {
        let fence = Fence::closed();
        let start = Instant::now();
        let waiting = tokio::spawn({
            let fence = fence.clone();
            async move {
                fence.wait_open().await;
                let opened = start.elapsed();
                fence.wait_closed().await;
                (opened, start.elapsed())
            }
        });
        tokio::time::sleep(Duration::from_secs(3)).await;
        fence.open_until(start + Duration::from_secs(100));
        tokio::time::sleep(Duration::from_secs(4)).await;
        fence.close();
        let noticed = waiting.await.unwrap();
        assert_eq!(noticed, (Duration::from_secs(3), Duration::from_secs(7)));
    }

    #[tokio::test(start_paused = true)]
    async fn an_open_fence_stays_open() {
        let fence = Fence::open();
        tokio::time::advance(Duration::from_hours(10_000)).await;
        assert!(fence.is_open());
    }
}
