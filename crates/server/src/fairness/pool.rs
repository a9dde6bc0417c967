//! A pool of seats: no flow holds more than its share, and queued requests are seated round robin over the
//! flows. Pure: without a clock or tasks.

use std::collections::{BTreeMap, VecDeque};

/// A request for seats.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask {
    pub(super) flow: u64,
    /// How many seats it takes.
    pub(super) width: u32,
    /// How many seats this flow may hold at once.
    pub(super) share: u32,
    /// How many requests of this flow may be queued.
    pub(super) queue: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// This many seats, without waiting.
    Seated(u32),
    /// Queued. The waiter gets `width` seats when it is notified.
    Wait {
        ticket: u64,
        width: u32,
    },
    Refused,
}

/// `W` notifies a waiter that it has been seated.
pub(super) struct Pool<W> {
    seats: u32,
    taken: u32,
    waiting: usize,
    waiting_max: usize,
    next_ticket: u64,
    /// The flows with seats or queued requests.
    flows: BTreeMap<u64, Flow<W>>,
    /// The flows with queued requests that were below their share at the last check, in round-robin order.
    rotation: VecDeque<u64>,
}

struct Flow<W> {
    held: u32,
    share: u32,
    in_rotation: bool,
    waiting: VecDeque<Waiter<W>>,
}

struct Waiter<W> {
    ticket: u64,
    width: u32,
    notify: W,
}

impl<W> Flow<W> {
    fn may_hold(&self, more: u32) -> bool {
        self.held + more <= self.share
    }
}

impl<W> Pool<W> {
    pub(super) fn new(seats: u32, waiting_max: usize) -> Self {
        Self {
            seats,
            taken: 0,
            waiting: 0,
            waiting_max,
            next_ticket: 0,
            flows: BTreeMap::new(),
            rotation: VecDeque::new(),
        }
    }

    pub(super) fn taken(&self) -> u32 {
        self.taken
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Takes seats or queues the request. `notify` is called only to queue it.
    pub(super) fn ask(&mut self, ask: Ask, notify: impl FnOnce() -> W) -> Answer {
        let share = ask.share.clamp(1, self.seats);
        // A request wider than its share would wait forever.
        let width = ask.width.clamp(1, share);
        let queue_is_empty = self.rotation.is_empty();
        let seats_are_free = self.taken + width <= self.seats;
        let flow = self.flows.entry(ask.flow).or_insert_with(|| Flow {
            held: 0,
            share,
            in_rotation: false,
            waiting: VecDeque::new(),
        });
        flow.share = share;
        let may_hold = flow.waiting.is_empty() && flow.may_hold(width);
        if may_hold && queue_is_empty && seats_are_free {
            flow.held += width;
            self.taken += width;
            return Answer::Seated(width);
        }
        if flow.waiting.len() >= ask.queue || self.waiting >= self.waiting_max {
            self.forget(ask.flow);
            return Answer::Refused;
        }
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.waiting += 1;
        flow.waiting.push_back(Waiter {
            ticket,
            width,
            notify: notify(),
        });
        if may_hold && !flow.in_rotation {
            flow.in_rotation = true;
            self.rotation.push_back(ask.flow);
        }
        Answer::Wait { ticket, width }
    }

    /// Releases seats. Rerotation the waiters that were seated, to be notified.
    #[must_use]
    pub(super) fn release(&mut self, key: u64, width: u32) -> Vec<W> {
        self.taken -= width;
        if let Some(flow) = self.flows.get_mut(&key) {
            flow.held -= width;
            if !flow.in_rotation && !flow.waiting.is_empty() {
                flow.in_rotation = true;
                self.rotation.push_back(key);
            }
        }
        self.forget(key);
        self.seat_waiting()
    }

    /// Removes a waiter from the queue, or releases the seats that it has just been given. Rerotation the waiters
    /// that were seated because of that.
    #[must_use]
    pub(super) fn cancel(&mut self, key: u64, ticket: u64, width: u32) -> Vec<W> {
        let flow = self.flows.get_mut(&key);
        let removed = flow.and_then(|flow| {
            let position = flow.waiting.iter().position(|w| w.ticket == ticket);
            position.and_then(|position| flow.waiting.remove(position))
        });
        if removed.is_none() {
            return self.release(key, width);
        }
        self.waiting -= 1;
        self.forget(key);
        // It may have blocked the queue because it needed more seats than were free.
        self.seat_waiting()
    }

    fn seat_waiting(&mut self) -> Vec<W> {
        let mut seated = Vec::new();
        while let Some(key) = self.rotation.front().copied() {
            let flow = self.flows.get_mut(&key);
            let next = flow.and_then(|flow| Some((flow.waiting.front()?.width, flow)));
            let Some((width, flow)) = next else {
                self.leave_rotation(key);
                continue;
            };
            if !flow.may_hold(width) {
                self.leave_rotation(key);
                continue;
            }
            if self.taken + width > self.seats {
                break;
            }
            flow.held += width;
            self.taken += width;
            self.waiting -= 1;
            seated.extend(flow.waiting.pop_front().map(|waiter| waiter.notify));
            self.rotation.rotate_left(1);
        }
        seated
    }

    /// Removes the flow at the front from the round robin.
    fn leave_rotation(&mut self, key: u64) {
        self.rotation.pop_front();
        if let Some(flow) = self.flows.get_mut(&key) {
            flow.in_rotation = false;
        }
    }

    /// Drops a flow without seats and queued requests.
    fn forget(&mut self, key: u64) {
        let Some(flow) = self.flows.get(&key) else {
            return;
        };
        if flow.held > 0 || !flow.waiting.is_empty() {
            return;
        }
        if flow.in_rotation {
            self.rotation.retain(|flow| *flow != key);
        }
        self.flows.remove(&key);
    }
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
