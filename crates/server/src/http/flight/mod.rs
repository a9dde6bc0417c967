//! What is in flight: seats for requests, watches, connections and handshakes, so that no client takes
//! all of the server and nobody's signs of life go under.
//!
//! ```text
//!  who asks for what ──▶ lane: which seats, whose account, how wide
//!                             │
//!                             ▼
//!                        pool: seated · waits in turn · refused
//!                             │
//!                             ▼
//!                        a Seat, given back when it is dropped
//! ```
//!
//! Seats are asked for once a client is known and before its body is read. How many there are, and why,
//! is written in [`super::limits`].

mod lane;
mod pool;
mod sizes;

use std::hash::RandomState;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

pub(crate) use lane::Lane;
use lane::Wish;
use pool::{Answer, Pool};
use sizes::{Place, Sizes};

use super::limits;
use crate::api::Entry;
use crate::request::Caller;
use crate::status::{ApiError, Result};

/// All seats.
pub(crate) struct Flight {
    lanes: [Seats; Lane::ALL.len()],
    /// Turns names into numbers that no outsider can foresee.
    keys: RandomState,
    sizes: Sizes,
}

struct Seats {
    pool: Mutex<Pool<oneshot::Sender<()>>>,
    refused: AtomicU64,
}

/// What a lane looks like at one moment.
pub(crate) struct Figures {
    /// Seats taken.
    pub(crate) taken: u32,
    /// Requests that wait.
    pub(crate) waiting: usize,
    /// Requests refused so far.
    pub(crate) refused: u64,
}

impl Default for Flight {
    fn default() -> Self {
        Self {
            lanes: Lane::ALL.map(|lane| Seats {
                pool: Mutex::new(Pool::new(lane.seats(), limits::QUEUE_MAX)),
                refused: AtomicU64::new(0),
            }),
            keys: RandomState::new(),
            sizes: Sizes::default(),
        }
    }
}

impl Flight {
    /// A seat for a request with a body of this size, or several for a large one or for a list that is
    /// expected to be large, as soon as they are free. Health checks need none.
    pub(crate) async fn request(
        self: &Arc<Self>,
        entry: &Entry,
        caller: &Caller,
        bytes: u64,
    ) -> Result<Option<Seat>> {
        let list = Sizes::place(entry, &self.keys);
        let bytes = bytes.max(list.map_or(0, |list| self.sizes.expected(list)));
        let Some(wish) = lane::request(entry, caller, bytes, &self.keys) else {
            return Ok(None);
        };
        let mut seat = self.seat(wish).await.ok_or_else(refusal)?;
        seat.list = list;
        Ok(Some(seat))
    }

    /// A place for a watch.
    pub(crate) async fn watch(self: &Arc<Self>, entry: &Entry, caller: &Caller) -> Result<Seat> {
        let seat = self.seat(lane::watch(entry, caller, &self.keys)).await;
        seat.ok_or_else(refusal)
    }

    /// A place for a log, a shell or a tunnel.
    pub(crate) async fn session(self: &Arc<Self>, entry: &Entry, caller: &Caller) -> Result<Seat> {
        let seat = self.seat(lane::session(entry, caller, &self.keys)).await;
        seat.ok_or_else(refusal)
    }

    /// A place for a connection from this address.
    pub(super) async fn connection(self: &Arc<Self>, address: IpAddr) -> Option<Seat> {
        self.seat(lane::connection(address, &self.keys)).await
    }

    /// A place to shake hands, within so much time.
    pub(super) async fn handshake(
        self: &Arc<Self>,
        address: IpAddr,
        within: Duration,
    ) -> Option<Seat> {
        self.seat(lane::handshake(address, within, &self.keys))
            .await
    }

    /// How it looks in a lane.
    pub(crate) fn figures(&self, lane: Lane) -> Figures {
        let pool = self.pool(lane);
        Figures {
            taken: pool.taken(),
            waiting: pool.waiting(),
            refused: self.lanes[lane as usize].refused.load(Ordering::Relaxed),
        }
    }

    async fn seat(self: &Arc<Self>, wish: Wish) -> Option<Seat> {
        let Wish { lane, ask, wait } = wish;
        let mut told = None;
        let answer = self.pool(lane).ask(ask, || {
            let (tell, listen) = oneshot::channel();
            told = Some(listen);
            tell
        });
        let (width, ticket) = match answer {
            Answer::Seated(width) => (width, None),
            Answer::Wait { ticket, width } => (width, Some(ticket)),
            Answer::Refused => return self.refuse(lane),
        };
        let mut seat = Seat {
            flight: Arc::clone(self),
            lane,
            flow: ask.flow,
            width,
            ticket,
            list: None,
            read: 0,
        };
        let Some(told) = told else {
            return Some(seat);
        };
        // Dropped in here, it leaves the queue.
        match tokio::time::timeout(wait, told).await {
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
        // Nothing in a pool panics halfway.
        pool.unwrap_or_else(PoisonError::into_inner)
    }
}

fn refusal() -> ApiError {
    ApiError::too_many_requests(limits::RETRY_AFTER_SECONDS)
}

/// A seat, or several beside each other, until dropped.
pub(crate) struct Seat {
    flight: Arc<Flight>,
    lane: Lane,
    flow: u64,
    width: u32,
    /// What it waits with while it is none yet.
    ticket: Option<u64>,
    /// The list that is answered from here, and how much of it was read.
    list: Option<Place>,
    read: u64,
}

impl Seat {
    /// Some of the answer was read.
    pub(super) fn read(&mut self, bytes: usize) {
        self.read += bytes as u64;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut pool = self.flight.pool(self.lane);
        let seated = match self.ticket {
            Some(ticket) => pool.give_up(self.flow, ticket, self.width),
            None => pool.leave(self.flow, self.width),
        };
        drop(pool);
        if let Some(list) = self.list {
            self.flight.sizes.note(list, self.read);
        }
        for waiter in seated {
            // Whoever is gone meanwhile gives its seat back itself.
            let _gone = waiter.send(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::pool::Ask;
    use super::*;

    fn wish(share: u32, queue: usize) -> Wish {
        Wish {
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
        let flight = Arc::new(Flight::default());
        let first = flight.seat(wish(1, 1)).await.unwrap();
        let mut second = Box::pin(flight.seat(wish(1, 1)));
        assert!(futures_util::poll!(second.as_mut()).is_pending());
        assert_eq!(flight.figures(Lane::Mutating).waiting, 1);
        assert!(flight.seat(wish(1, 1)).await.is_none(), "the queue is full");
        drop(first);
        let second = second.await.expect("there is a seat now");
        assert_eq!(flight.figures(Lane::Mutating).taken, 1);
        drop(second);
        assert_eq!(flight.figures(Lane::Mutating).taken, 0);
        assert_eq!(flight.figures(Lane::Mutating).refused, 1);
    }

    #[tokio::test]
    async fn a_waiter_that_is_dropped_leaves_the_queue() {
        let flight = Arc::new(Flight::default());
        let first = flight.seat(wish(1, 1)).await.unwrap();
        let mut second = Box::pin(flight.seat(wish(1, 1)));
        assert!(futures_util::poll!(second.as_mut()).is_pending());
        drop(second);
        assert_eq!(flight.figures(Lane::Mutating).waiting, 0);
        // Seated and dropped before it could notice: the seat is free again.
        let mut third = Box::pin(flight.seat(wish(1, 1)));
        assert!(futures_util::poll!(third.as_mut()).is_pending());
        drop(first);
        drop(third);
        assert_eq!(flight.figures(Lane::Mutating).taken, 0);
    }

    #[tokio::test]
    async fn nobody_waits_longer_than_allowed() {
        let flight = Arc::new(Flight::default());
        let _first = flight.seat(wish(1, 1)).await.unwrap();
        let hasty = Wish {
            wait: Duration::from_millis(5),
            ..wish(1, 1)
        };
        assert!(flight.seat(hasty).await.is_none());
        assert_eq!(flight.figures(Lane::Mutating).waiting, 0);
    }

    #[tokio::test]
    async fn one_address_gets_only_so_many_connections() {
        let flight = Arc::new(Flight::default());
        let (one, other) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        let mut places = Vec::new();
        for _ in 0..limits::CONNECTIONS_PER_ADDRESS {
            places.push(flight.connection(one).await.unwrap());
        }
        assert!(flight.connection(one).await.is_none());
        assert!(flight.connection(other).await.is_some());
        places.pop();
        assert!(flight.connection(one).await.is_some());
        assert_eq!(flight.figures(Lane::Connections).refused, 1);
    }

    /// What every request pays, printed for those who want to know; asserted far above it.
    #[tokio::test]
    async fn a_seat_costs_little() {
        let flight = Arc::new(Flight::default());
        let rounds = 100_000;
        let started = std::time::Instant::now();
        for _ in 0..rounds {
            flight.seat(wish(1, 0)).await.unwrap();
        }
        let each = started.elapsed() / rounds;
        println!("a seat, taken and given back: {each:?}");
        assert!(each < Duration::from_micros(100), "{each:?}");
    }
}
