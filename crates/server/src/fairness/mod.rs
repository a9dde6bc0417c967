//! Priority and fairness: limits how many requests, watches, connections and TLS handshakes are under way,
//! so that no client takes all of the server and the heartbeats of nodes are always served.
//!
//! ```text
//!  request ──▶ classify: priority level (lane), flow, width, share
//!                  │
//!                  ▼
//!              pool: seated · queued, round robin over flows · rejected with 429
//!                  │
//!                  ▼
//!              Seat, released when it is dropped
//! ```
//!
//! A request asks for a seat after it is authorised and before its body is read. [`crate::limits`] has the
//! numbers and their reasons.

mod classify;
mod list_sizes;
mod pool;

use std::hash::RandomState;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kennel_core::metric::Page;
use tokio::sync::oneshot;

use classify::{Lane, SeatRequest};
pub(crate) use classify::{NODES, is_controller};
use list_sizes::{ListSizes, Slot};
use pool::{Answer, Pool};

use crate::limits;
use crate::metrics;
use crate::request::{AuthorizedRequest, Caller};
use crate::status::{ApiError, Result};

/// The seats of all lanes.
pub(crate) struct Fairness {
    lanes: [Seats; Lane::ALL.len()],
    /// Hashes flows with random keys, so that clients cannot make their flows collide.
    keys: RandomState,
    sizes: ListSizes,
}

struct Seats {
    pool: Mutex<Pool<oneshot::Sender<()>>>,
    refused: AtomicU64,
}

/// The load of a lane.
struct Load {
    taken: u32,
    waiting: usize,
    refused: u64,
}

impl Default for Fairness {
    fn default() -> Self {
        Self {
            lanes: Lane::ALL.map(|lane| Seats {
                pool: Mutex::new(Pool::new(lane.seats(), limits::QUEUE_MAX)),
                refused: AtomicU64::new(0),
            }),
            keys: RandomState::new(),
            sizes: ListSizes::default(),
        }
    }
}

impl Fairness {
    /// Waits for a seat for a request with a body of this size. A large body, or a list that is expected to
    /// be large, takes several. Health checks need none.
    pub(crate) async fn request(
        self: &Arc<Self>,
        request: &AuthorizedRequest,
        caller: &Caller,
        bytes: u64,
    ) -> Result<Option<Seat>> {
        let list = ListSizes::slot(request, &self.keys);
        let bytes = bytes.max(list.map_or(0, |list| self.sizes.expected(list)));
        let Some(wanted) = classify::request(request, caller, bytes, &self.keys) else {
            return Ok(None);
        };
        let mut seat = self.seat(wanted).await.ok_or_else(refusal)?;
        seat.list = list;
        Ok(Some(seat))
    }

    /// A seat for a watch, which is refused at once if there is none.
    pub(crate) async fn watch(
        self: &Arc<Self>,
        request: &AuthorizedRequest,
        caller: &Caller,
    ) -> Result<Seat> {
        let seat = self
            .seat(classify::watch(request, caller, &self.keys))
            .await;
        seat.ok_or_else(refusal)
    }

    /// A seat for a log, exec, attach or port-forward session.
    pub(crate) async fn session(
        self: &Arc<Self>,
        request: &AuthorizedRequest,
        caller: &Caller,
    ) -> Result<Seat> {
        let seat = self
            .seat(classify::session(request, caller, &self.keys))
            .await;
        seat.ok_or_else(refusal)
    }

    /// A seat for a connection from this address.
    pub(crate) async fn connection(self: &Arc<Self>, address: IpAddr) -> Option<Seat> {
        self.seat(classify::connection(address, &self.keys)).await
    }

    /// Waits for a seat for a TLS handshake.
    pub(crate) async fn handshake(
        self: &Arc<Self>,
        address: IpAddr,
        within: Duration,
    ) -> Option<Seat> {
        self.seat(classify::handshake(address, within, &self.keys))
            .await
    }

    fn load(&self, lane: Lane) -> Load {
        let pool = self.pool(lane);
        Load {
            taken: pool.taken(),
            waiting: pool.waiting(),
            refused: self.lanes[lane as usize].refused.load(Ordering::Relaxed),
        }
    }

    async fn seat(self: &Arc<Self>, request: SeatRequest) -> Option<Seat> {
        let SeatRequest { lane, ask, wait } = request;
        let mut seated = None;
        let answer = self.pool(lane).ask(ask, || {
            let (sender, receiver) = oneshot::channel();
            seated = Some(receiver);
            sender
        });
        let (width, ticket) = match answer {
            Answer::Seated(width) => (width, None),
            Answer::Wait { ticket, width } => (width, Some(ticket)),
            Answer::Refused => return self.refuse(lane),
        };
        let mut seat = Seat {
            fairness: Arc::clone(self),
            lane,
            flow: ask.flow,
            width,
            ticket,
            list: None,
            bytes_read: 0,
        };
        let Some(seated) = seated else {
            return Some(seat);
        };
        // If this future is dropped here, the seat leaves the queue.
        match tokio::time::timeout(wait, seated).await {
            Ok(Ok(())) => {
                seat.ticket = None;
                Some(seat)
            }
            _ => self.refuse(lane),
        }
    }

    fn refuse(&self, lane: Lane) -> Option<Seat> {
        let refused = &self.lanes[lane as usize].refused;
        refused.fetch_add(1, Ordering::Relaxed);
        None
    }

    fn pool(&self, lane: Lane) -> MutexGuard<'_, Pool<oneshot::Sender<()>>> {
        let pool = self.lanes[lane as usize].pool.lock();
        // No method of a pool panics halfway, so a poisoned pool is consistent.
        pool.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Fairness {
    /// Shows the load of all lanes.
    pub(crate) fn show(&self, page: &mut Page) {
        let loads = Lane::ALL.map(|lane| (format!("lane=\"{}\"", lane.name()), self.load(lane)));
        let loads = || loads.iter().map(|(lane, load)| (lane, load));
        page.rows(
            &metrics::INFLIGHT,
            loads().map(|(lane, load)| (lane, load.taken)),
        );
        page.rows(
            &metrics::QUEUED,
            loads().map(|(lane, load)| (lane, load.waiting)),
        );
        page.rows(
            &metrics::REJECTED,
            loads().map(|(lane, load)| (lane, load.refused)),
        );
    }
}

fn refusal() -> ApiError {
    ApiError::too_many_requests(limits::RETRY_AFTER_SECONDS)
}

/// One or more seats, released when dropped.
pub(crate) struct Seat {
    fairness: Arc<Fairness>,
    lane: Lane,
    flow: u64,
    width: u32,
    /// Its place in the queue while it waits.
    ticket: Option<u64>,
    /// The list that it answers, and how many bytes the client has read.
    list: Option<Slot>,
    bytes_read: u64,
}

impl Seat {
    /// Counts bytes of the answer that the client has read.
    pub(crate) fn note_read(&mut self, bytes: usize) {
        self.bytes_read += bytes as u64;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut pool = self.fairness.pool(self.lane);
        let seated = match self.ticket {
            Some(ticket) => pool.cancel(self.flow, ticket, self.width),
            None => pool.release(self.flow, self.width),
        };
        drop(pool);
        if let Some(list) = self.list {
            self.fairness.sizes.note(list, self.bytes_read);
        }
        for waiter in seated {
            // A waiter that is gone releases its seat itself.
            let _gone = waiter.send(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::pool::Ask;
    use super::*;

    fn request_of(share: u32, queue: usize) -> SeatRequest {
        SeatRequest {
            lane: Lane::Mutating,
            ask: Ask {
                flow: 1,
                width: 1,
                share,
                queue,
            },
            wait: Duration::from_secs(5),
        }
    }

    #[tokio::test]
    async fn a_waiter_is_seated_when_a_seat_is_given_back() {
        let fairness = Arc::new(Fairness::default());
        let first = fairness.seat(request_of(1, 1)).await.unwrap();
        let mut second = Box::pin(fairness.seat(request_of(1, 1)));
        assert!(futures_util::poll!(second.as_mut()).is_pending());
        assert_eq!(fairness.load(Lane::Mutating).waiting, 1);
        assert!(
            fairness.seat(request_of(1, 1)).await.is_none(),
            "the queue is full"
        );
        drop(first);
        let second = second.await.expect("there is a seat now");
        assert_eq!(fairness.load(Lane::Mutating).taken, 1);
        drop(second);
        assert_eq!(fairness.load(Lane::Mutating).taken, 0);
        assert_eq!(fairness.load(Lane::Mutating).refused, 1);
    }

    #[tokio::test]
    async fn a_waiter_that_is_dropped_leaves_the_queue() {
        let fairness = Arc::new(Fairness::default());
        let first = fairness.seat(request_of(1, 1)).await.unwrap();
        let mut second = Box::pin(fairness.seat(request_of(1, 1)));
        assert!(futures_util::poll!(second.as_mut()).is_pending());
        drop(second);
        assert_eq!(fairness.load(Lane::Mutating).waiting, 0);
        // Seated and dropped before it could notice: the seat is free again.
        let mut third = Box::pin(fairness.seat(request_of(1, 1)));
        assert!(futures_util::poll!(third.as_mut()).is_pending());
        drop(first);
        drop(third);
        assert_eq!(fairness.load(Lane::Mutating).taken, 0);
    }

    #[tokio::test]
    async fn nobody_waits_longer_than_allowed() {
        let fairness = Arc::new(Fairness::default());
        let _first = fairness.seat(request_of(1, 1)).await.unwrap();
        let hasty = SeatRequest {
            wait: Duration::from_millis(5),
            ..request_of(1, 1)
        };
        assert!(fairness.seat(hasty).await.is_none());
        assert_eq!(fairness.load(Lane::Mutating).waiting, 0);
    }

    #[tokio::test]
    async fn one_address_gets_only_so_many_connections() {
        let fairness = Arc::new(Fairness::default());
        let (one, other) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        let mut places = Vec::new();
        for _ in 0..limits::CONNECTIONS_PER_ADDRESS {
            places.push(fairness.connection(one).await.unwrap());
        }
        assert!(fairness.connection(one).await.is_none());
        assert!(fairness.connection(other).await.is_some());
        places.pop();
        assert!(fairness.connection(one).await.is_some());
        assert_eq!(fairness.load(Lane::Connections).refused, 1);
    }

    /// What every request pays, printed for those who want to know; asserted far above it.
    #[tokio::test]
    async fn a_seat_costs_little() {
        let fairness = Arc::new(Fairness::default());
        let rounds = 100_000;
        let started = std::time::Instant::now();
        for _ in 0..rounds {
            fairness.seat(request_of(1, 0)).await.unwrap();
        }
        let each = started.elapsed() / rounds;
        println!("a seat, taken and given back: {each:?}");
        assert!(each < Duration::from_micros(100), "{each:?}");
    }
}
