//! What goes on on one HTTP/2 connection, so that it can be told when nothing does: no request for a long
//! time, or an answer that its client has stopped reading. On HTTP/1.1 the socket itself shows that; on
//! HTTP/2 a client can keep the socket lively and still take nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::limits::Patience;

/// The requests of a connection.
pub(super) struct Traffic {
    book: Mutex<Book>,
}

struct Book {
    next: u64,
    /// When each answer that waits to be read made its last step; nothing for those still being worked on
    /// and for watches, which end by themselves when they are not read.
    open: BTreeMap<u64, Option<Instant>>,
    /// When the last request ended.
    quiet_since: Instant,
}

/// Why a connection should end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Boredom {
    /// There was no request for long enough.
    Idle,
    /// An answer has not been read for long enough.
    Stuck,
}

impl Traffic {
    pub(super) fn new() -> Arc<Self> {
        let book = Book {
            next: 0,
            open: BTreeMap::new(),
            quiet_since: Instant::now(),
        };
        Arc::new(Self {
            book: Mutex::new(book),
        })
    }

    /// A request comes.
    pub(super) fn begin(self: &Arc<Self>) -> Exchange {
        let mut book = self.book();
        let id = book.next;
        book.next += 1;
        book.open.insert(id, None);
        drop(book);
        Exchange {
            traffic: Arc::clone(self),
            id,
        }
    }

    /// Waits until there is no more point in keeping the connection.
    pub(super) async fn boring(&self, patience: Patience) -> Boredom {
        let step = patience.stall.min(patience.idle) / 2;
        loop {
            tokio::time::sleep(step).await;
            if let Some(why) = self.verdict(patience.stall, patience.idle, Instant::now()) {
                return why;
            }
        }
    }

    fn verdict(&self, stall: Duration, idle: Duration, now: Instant) -> Option<Boredom> {
        let book = self.book();
        let since = |then: Instant| now.saturating_duration_since(then);
        if book.open.is_empty() {
            return (since(book.quiet_since) >= idle).then_some(Boredom::Idle);
        }
        let mut waiting = book.open.values().flatten();
        waiting
            .any(|step| since(*step) >= stall)
            .then_some(Boredom::Stuck)
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request and its answer, until dropped.
pub(super) struct Exchange {
    traffic: Arc<Traffic>,
    id: u64,
}

impl Exchange {
    /// The answer is there, or some more of it was read.
    pub(super) fn step(&self) {
        let now = Instant::now();
        self.traffic.book().open.insert(self.id, Some(now));
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let mut book = self.traffic.book();
        book.open.remove(&self.id);
        if book.open.is_empty() {
            book.quiet_since = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STALL: Duration = Duration::from_mins(1);
    const IDLE: Duration = Duration::from_mins(3);

    fn after(traffic: &Traffic, time: Duration) -> Option<Boredom> {
        traffic.verdict(STALL, IDLE, Instant::now() + time)
    }

    #[test]
    fn without_requests_a_connection_is_idle() {
        let traffic = Traffic::new();
        assert_eq!(after(&traffic, IDLE / 2), None);
        assert_eq!(after(&traffic, IDLE), Some(Boredom::Idle));
        let exchange = traffic.begin();
        assert_eq!(after(&traffic, IDLE * 2), None, "it is being worked on");
        drop(exchange);
        assert_eq!(after(&traffic, IDLE), Some(Boredom::Idle));
    }

    #[test]
    fn an_answer_that_is_not_read_is_stuck_whatever_else_goes_on() {
        let traffic = Traffic::new();
        let (unread, _working) = (traffic.begin(), traffic.begin());
        unread.step();
        assert_eq!(after(&traffic, STALL / 2), None);
        assert_eq!(after(&traffic, STALL), Some(Boredom::Stuck));
        drop(unread);
        assert_eq!(after(&traffic, STALL), None);
    }
}
