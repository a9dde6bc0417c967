//! The leader fence: whether this process may write now. Open for ever, or only while it certainly holds a lease.
//!
//! A write that is in flight when the fence closes is given up: its client waits no longer and cancels the request. What a
//! server has received by then it may still apply. That is why the fence closes some time before the lease expires.
//!
//! Time in which the machine was suspended counts: meanwhile, another machine may have taken the lease. A hypervisor that pauses
//! the machine stops all of its clocks, so that cannot be noticed.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};
use tokio::sync::Notify;
use tokio::time::Instant;

/// The value of a fence that never closes.
const FOR_EVER: u64 = u64::MAX;
/// How often to look whether the machine was suspended: timers do not count that time.
const SUSPENSION_CHECK: Duration = Duration::from_secs(2);

/// See the [module](self). Clones share their state.
#[derive(Clone, Debug)]
pub struct Fence {
    /// Zero of `open_until`.
    origin: Moment,
    /// Milliseconds after the origin until which the fence is open.
    open_until: Arc<AtomicU64>,
    /// Notified when the fence is opened, prolonged or closed.
    changed: Arc<Notify>,
    suspensions: Suspensions,
}

/// A time from which a fence can be opened.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    pub at: Instant,
    /// How long the machine had been suspended by then.
    suspended: Duration,
}

/// How long the machine has been suspended since it booted.
#[derive(Clone)]
struct Suspensions(Arc<dyn Fn() -> Duration + Send + Sync>);

impl fmt::Debug for Suspensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Suspensions")
    }
}

impl Suspensions {
    fn of_machine() -> Self {
        Self(Arc::new(|| {
            let awake = duration(clock_gettime(ClockId::Monotonic));
            duration(clock_gettime(ClockId::Boottime)).saturating_sub(awake)
        }))
    }

    fn now(&self) -> Moment {
        Moment {
            at: Instant::now(),
            suspended: (self.0)(),
        }
    }
}

fn duration(time: Timespec) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or(0);
    Duration::new(seconds, nanoseconds)
}

impl Fence {
    /// Open for ever, for clients that need no lease.
    pub fn open() -> Self {
        Self::until(FOR_EVER, Suspensions::of_machine())
    }

    /// Closed until it is [opened](Self::open_from).
    pub fn closed() -> Self {
        Self::until(0, Suspensions::of_machine())
    }

    /// A closed one on a machine that has been suspended for so long; for tests.
    pub fn closed_with(suspended: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self::until(0, Suspensions(Arc::new(suspended)))
    }

    fn until(millis: u64, suspensions: Suspensions) -> Self {
        Self {
            origin: suspensions.now(),
            open_until: Arc::new(AtomicU64::new(millis)),
            changed: Arc::default(),
            suspensions,
        }
    }

    /// For [`Self::open_from`]. Take it before the lease is renewed.
    pub fn now(&self) -> Moment {
        self.suspensions.now()
    }

    /// Opens the fence until so long after `began`. Never shortens the time it is open.
    pub fn open_from(&self, began: Moment, duration: Duration) {
        self.open_until(Moment {
            at: began.at + duration,
            ..began
        });
    }

    fn open_until(&self, until: Moment) {
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
            until => self.millis(self.now()) < until,
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
            let left = match self.open_until.load(Ordering::SeqCst) {
                FOR_EVER => return std::future::pending().await,
                until => until.saturating_sub(self.millis(self.now())),
            };
            if left == 0 {
                return;
            }
            let left = Duration::from_millis(left);
            tokio::select! {
                () = tokio::time::sleep(left.min(SUSPENSION_CHECK)) => {}
                () = changed => {}
            }
        }
    }

    /// From the origin, suspensions included.
    fn millis(&self, moment: Moment) -> u64 {
        let awake = moment.at.saturating_duration_since(self.origin.at);
        let suspended = moment.suspended.saturating_sub(self.origin.suspended);
        u64::try_from((awake + suspended).as_millis()).unwrap_or(FOR_EVER - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open_until(fence: &Fence, at: Instant) {
        fence.open_until(Moment { at, ..fence.now() });
    }

    #[tokio::test(start_paused = true)]
    async fn a_fence_closes_when_its_time_is_over_and_not_before() {
        let fence = Fence::closed();
        let other = fence.clone();
        assert!(!fence.is_open());
        open_until(&fence, Instant::now() + Duration::from_secs(10));
        tokio::time::advance(Duration::from_millis(9_999)).await;
        assert!(other.is_open());
        open_until(&fence, Instant::now());
        assert!(other.is_open(), "a shorter time does not shorten it");
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(!other.is_open());
        open_until(&fence, Instant::now() + Duration::from_secs(10));
        other.close();
        assert!(!fence.is_open());
    }

    #[tokio::test(start_paused = true)]
    async fn renewals_prolong_the_wait_for_the_end() {
        let fence = Fence::closed();
        fence.wait_closed().await;
        let start = Instant::now();
        open_until(&fence, start + Duration::from_secs(10));
        let waiting = tokio::spawn({
            let fence = fence.clone();
            async move { fence.wait_closed().await }
        });
        tokio::time::sleep(Duration::from_secs(9)).await;
        open_until(&fence, start + Duration::from_secs(19));
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
        open_until(&fence, start + Duration::from_secs(100));
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

    /// A fence, and how many milliseconds its machine has been suspended.
    fn suspendable() -> (Fence, Arc<AtomicU64>) {
        let suspended = Arc::new(AtomicU64::new(3_600_000));
        let own = Arc::clone(&suspended);
        let read = move || Duration::from_millis(own.load(Ordering::SeqCst));
        (Fence::closed_with(read), suspended)
    }

    #[tokio::test(start_paused = true)]
    async fn a_machine_that_was_suspended_finds_its_fence_closed() {
        let (fence, suspended) = suspendable();
        fence.open_from(fence.now(), Duration::from_secs(30));
        assert!(fence.is_open());
        suspended.fetch_add(29_999, Ordering::SeqCst);
        assert!(fence.is_open());
        suspended.fetch_add(1, Ordering::SeqCst);
        assert!(!fence.is_open());
        // A renewal that was sent before says nothing about the time after.
        let before = fence.now();
        suspended.fetch_add(60_000, Ordering::SeqCst);
        fence.open_from(before, Duration::from_secs(30));
        assert!(!fence.is_open());
        fence.open_from(fence.now(), Duration::from_secs(30));
        assert!(fence.is_open());
        tokio::time::advance(Duration::from_secs(30)).await;
        assert!(!fence.is_open());
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_in_flight_is_given_up_soon_after_a_suspension() {
        let (fence, suspended) = suspendable();
        fence.open_from(fence.now(), Duration::from_secs(1_000));
        let start = Instant::now();
        let waiting = tokio::spawn({
            let fence = fence.clone();
            async move { fence.wait_closed().await }
        });
        tokio::time::sleep(Duration::from_secs(1)).await;
        suspended.fetch_add(1_000_000, Ordering::SeqCst);
        waiting.await.unwrap();
        assert_eq!(start.elapsed(), SUSPENSION_CHECK);
    }

    #[test]
    fn the_clocks_of_this_machine_agree() {
        let read = Suspensions::of_machine();
        let (first, second) = (read.now().suspended, read.now().suspended);
        assert!(second.abs_diff(first) < Duration::from_mins(1));
    }
}
