//! So many seats, and who gets the next: nobody holds more than their share, and those who wait are
//! seated in turn, one flow after the other. Pure: it knows neither time nor tasks, nor what a seat is for.

use std::collections::{BTreeMap, VecDeque};

/// What somebody asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask {
    /// Whose account it goes on.
    pub(super) flow: u64,
    /// How many seats.
    pub(super) width: u32,
    /// How many seats this flow may hold at once.
    pub(super) share: u32,
    /// How many of this flow may wait at once.
    pub(super) queue: usize,
}

/// What they get.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// This many seats, at once.
    Seated(u32),
    /// A ticket, and the number of seats it is good for once the waiter is told.
    Wait { ticket: u64, width: u32 },
    /// Nothing.
    Refused,
}

/// The seats. `W` is how a waiter is told that it has been seated.
pub(super) struct Pool<W> {
    seats: u32,
    taken: u32,
    waiting: usize,
    waiting_max: usize,
    next_ticket: u64,
    /// Those who hold seats or wait for some.
    flows: BTreeMap<u64, Flow<W>>,
    /// Flows with somebody waiting that were below their share when last looked at, in turn.
    turns: VecDeque<u64>,
}

struct Flow<W> {
    held: u32,
    share: u32,
    in_turn: bool,
    waiting: VecDeque<Waiter<W>>,
}

struct Waiter<W> {
    ticket: u64,
    width: u32,
    tell: W,
}

impl<W> Flow<W> {
    fn may_hold(&self, more: u32) -> bool {
        self.held + more <= self.share
    }
}

impl<W> Pool<W> {
    /// So many seats, and room for so many who wait.
    pub(super) fn new(seats: u32, waiting_max: usize) -> Self {
        Self {
            seats,
            taken: 0,
            waiting: 0,
            waiting_max,
            next_ticket: 0,
            flows: BTreeMap::new(),
            turns: VecDeque::new(),
        }
    }

    /// Seats that are taken.
    pub(super) fn taken(&self) -> u32 {
        self.taken
    }

    /// How many wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Asks for seats. `tell` is kept only by those who have to wait.
    pub(super) fn ask(&mut self, ask: Ask, tell: impl FnOnce() -> W) -> Answer {
        let share = ask.share.clamp(1, self.seats);
        // Wider than the share would be to wait for ever.
        let width = ask.width.clamp(1, share);
        let nobody_is_before = self.turns.is_empty();
        let there_is_room = self.taken + width <= self.seats;
        let flow = self.flows.entry(ask.flow).or_insert_with(|| Flow {
            held: 0,
            share,
            in_turn: false,
            waiting: VecDeque::new(),
        });
        flow.share = share;
        let may = flow.waiting.is_empty() && flow.may_hold(width);
        if may && nobody_is_before && there_is_room {
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
            tell: tell(),
        });
        if may && !flow.in_turn {
            flow.in_turn = true;
            self.turns.push_back(ask.flow);
        }
        Answer::Wait { ticket, width }
    }

    /// Gives seats back. Returns those who are seated instead, to be told.
    #[must_use]
    pub(super) fn leave(&mut self, key: u64, width: u32) -> Vec<W> {
        self.taken -= width;
        if let Some(flow) = self.flows.get_mut(&key) {
            flow.held -= width;
            if !flow.in_turn && !flow.waiting.is_empty() {
                flow.in_turn = true;
                self.turns.push_back(key);
            }
        }
        self.forget(key);
        self.seat_next()
    }

    /// A waiter goes away: out of the queue, or off the seats it has just been given. Returns those who
    /// are seated because of that.
    #[must_use]
    pub(super) fn give_up(&mut self, key: u64, ticket: u64, width: u32) -> Vec<W> {
        let flow = self.flows.get_mut(&key);
        let place = flow.and_then(|flow| {
            let place = flow.waiting.iter().position(|w| w.ticket == ticket);
            place.and_then(|place| flow.waiting.remove(place))
        });
        if place.is_none() {
            return self.leave(key, width);
        }
        self.waiting -= 1;
        self.forget(key);
        // It may have been the one that did not fit and held up the others.
        self.seat_next()
    }

    fn seat_next(&mut self) -> Vec<W> {
        let mut seated = Vec::new();
        while let Some(key) = self.turns.front().copied() {
            let flow = self.flows.get_mut(&key);
            let next = flow.and_then(|flow| Some((flow.waiting.front()?.width, flow)));
            let Some((width, flow)) = next else {
                self.end_turn(key);
                continue;
            };
            if !flow.may_hold(width) {
                self.end_turn(key);
                continue;
            }
            if self.taken + width > self.seats {
                break;
            }
            flow.held += width;
            self.taken += width;
            self.waiting -= 1;
            seated.extend(flow.waiting.pop_front().map(|waiter| waiter.tell));
            self.turns.rotate_left(1);
        }
        seated
    }

    /// The flow at the front has nobody who could be seated now.
    fn end_turn(&mut self, key: u64) {
        self.turns.pop_front();
        if let Some(flow) = self.flows.get_mut(&key) {
            flow.in_turn = false;
        }
    }

    /// Forgets a flow that holds nothing and waits for nothing.
    fn forget(&mut self, key: u64) {
        let Some(flow) = self.flows.get(&key) else {
            return;
        };
        if flow.held > 0 || !flow.waiting.is_empty() {
            return;
        }
        if flow.in_turn {
            self.turns.retain(|turn| *turn != key);
        }
        self.flows.remove(&key);
    }
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
