//! Who is seated, who waits, who is refused: step by step, without time.

use super::*;

/// A pool whose waiters are told by name.
struct Room {
    pool: Pool<&'static str>,
    share: u32,
    queue: usize,
}

fn room(seats: u32, share: u32, queue: usize) -> Room {
    Room {
        pool: Pool::new(seats, 100),
        share,
        queue,
    }
}

impl Room {
    fn ask(&mut self, flow: u64, width: u32, name: &'static str) -> Answer {
        let ask = Ask {
            flow,
            width,
            share: self.share,
            queue: self.queue,
        };
        self.pool.ask(ask, || name)
    }

    fn sits(&mut self, flow: u64, width: u32) {
        assert_eq!(self.ask(flow, width, "-"), Answer::Seated(width));
    }

    fn waits(&mut self, flow: u64, width: u32, name: &'static str) -> u64 {
        match self.ask(flow, width, name) {
            Answer::Wait { ticket, .. } => ticket,
            other => panic!("{name} was to wait: {other:?}"),
        }
    }

    fn is_empty(&self) -> bool {
        let pool = &self.pool;
        pool.taken == 0 && pool.waiting == 0 && pool.flows.is_empty() && pool.turns.is_empty()
    }
}

#[test]
fn a_flow_gets_its_share_and_then_waits_and_is_then_refused() {
    let mut room = room(10, 2, 1);
    room.sits(1, 1);
    room.sits(1, 1);
    room.waits(1, 1, "third");
    assert_eq!(room.ask(1, 1, "fourth"), Answer::Refused);
    // The others do not notice.
    room.sits(2, 2);
    assert_eq!(room.pool.leave(1, 1), ["third"]);
    assert_eq!(room.pool.taken(), 4);
}

#[test]
fn those_who_wait_are_seated_one_flow_after_the_other() {
    let mut room = room(2, 2, 10);
    room.sits(1, 2);
    for name in ["a1", "a2", "a3"] {
        room.waits(2, 1, name);
    }
    room.waits(3, 1, "b1");
    room.waits(4, 1, "c1");
    assert_eq!(room.pool.leave(1, 2), ["a1", "b1"]);
    assert_eq!(room.pool.leave(2, 1), ["c1"]);
    assert_eq!(room.pool.leave(3, 1), ["a2"]);
    assert_eq!(room.pool.leave(4, 1), ["a3"]);
}

#[test]
fn nobody_overtakes_those_who_wait_for_a_free_seat() {
    let mut room = room(2, 2, 10);
    room.sits(1, 2);
    room.waits(2, 2, "wide");
    room.waits(3, 1, "narrow");
    // One seat is free, and "wide" is before everybody who could take it.
    assert!(room.pool.leave(1, 1).is_empty());
    room.waits(4, 1, "late");
    assert_eq!(room.pool.leave(1, 1), ["wide"]);
    assert_eq!(room.pool.leave(2, 2), ["narrow", "late"]);
}

#[test]
fn a_flow_at_its_share_holds_nobody_up() {
    let mut room = room(4, 2, 10);
    room.sits(1, 2);
    room.waits(1, 1, "greedy");
    room.sits(2, 2);
    room.waits(3, 1, "modest");
    assert_eq!(room.pool.leave(2, 2), ["modest"]);
    room.sits(3, 1);
    assert_eq!(room.pool.leave(1, 1), ["greedy"]);
}

#[test]
fn what_is_wider_than_the_share_is_as_wide_as_the_share() {
    let mut room = room(10, 3, 0);
    assert_eq!(room.ask(1, 100, "-"), Answer::Seated(3));
    assert_eq!(room.ask(1, 1, "-"), Answer::Refused);
    assert!(room.pool.leave(1, 3).is_empty());
    assert!(room.is_empty());
}

#[test]
fn a_waiter_that_gives_up_lets_the_next_one_through() {
    let mut room = room(2, 2, 10);
    room.sits(1, 1);
    let wide = room.waits(2, 2, "wide");
    room.waits(3, 1, "narrow");
    assert_eq!(room.pool.give_up(2, wide, 2), ["narrow"]);
    assert_eq!(room.pool.waiting(), 0);
}

#[test]
fn a_waiter_that_gives_up_after_it_was_seated_gives_the_seat_back() {
    let mut room = room(1, 1, 10);
    room.sits(1, 1);
    let ticket = room.waits(2, 1, "gone");
    room.waits(3, 1, "next");
    assert_eq!(room.pool.leave(1, 1), ["gone"]);
    assert_eq!(room.pool.give_up(2, ticket, 1), ["next"]);
    assert!(room.pool.leave(3, 1).is_empty());
    assert!(room.is_empty());
}

#[test]
fn all_who_wait_together_are_bounded() {
    let mut room = room(1, 1, 10);
    room.pool.waiting_max = 2;
    room.sits(1, 1);
    room.waits(2, 1, "a");
    room.waits(3, 1, "b");
    assert_eq!(room.ask(4, 1, "c"), Answer::Refused);
    assert!(!room.pool.flows.contains_key(&4), "no trace of the refused");
}

/// Random comings and goings: never more seats than there are, never more than a share, and in the end
/// everybody who waited was seated or went, and nothing is left behind.
#[test]
fn books_balance_whatever_happens() {
    for seed in 0..200 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut pool: Pool<(u64, u32, usize)> = Pool::new(7, 20);
        let mut seated: Vec<(u64, u32)> = Vec::new();
        let mut waiting: BTreeMap<usize, (u64, u64, u32)> = BTreeMap::new();
        for step in 0..500 {
            let told = match random.u32(0..4) {
                0 | 1 => {
                    let (flow, width) = (random.u64(0..4), random.u32(1..4));
                    let ask = Ask {
                        flow,
                        width,
                        share: 4,
                        queue: 3,
                    };
                    match pool.ask(ask, || (flow, width, step)) {
                        Answer::Seated(width) => seated.push((flow, width)),
                        Answer::Wait { ticket, width } => {
                            waiting.insert(step, (flow, ticket, width));
                        }
                        Answer::Refused => {}
                    }
                    Vec::new()
                }
                2 if !seated.is_empty() => {
                    let (flow, width) = seated.swap_remove(random.usize(0..seated.len()));
                    pool.leave(flow, width)
                }
                _ => match waiting.pop_first() {
                    Some((_, (flow, ticket, width))) => pool.give_up(flow, ticket, width),
                    None => Vec::new(),
                },
            };
            for (flow, width, step) in told {
                waiting.remove(&step).expect("only those who wait are told");
                seated.push((flow, width));
            }
            balance(&pool, &seated, waiting.len());
        }
        while let Some((flow, width)) = seated.pop() {
            for (flow, width, step) in pool.leave(flow, width) {
                waiting.remove(&step).expect("only those who wait are told");
                seated.push((flow, width));
            }
        }
        assert!(waiting.is_empty(), "seed {seed}: somebody waits for ever");
        assert!(pool.flows.is_empty() && pool.turns.is_empty() && pool.taken == 0);
    }
}

fn balance<W>(pool: &Pool<W>, seated: &[(u64, u32)], waiting: usize) {
    assert_eq!(pool.taken, seated.iter().map(|s| s.1).sum::<u32>());
    assert!(pool.taken <= pool.seats);
    assert_eq!(pool.waiting, waiting);
    for (key, flow) in &pool.flows {
        let held: u32 = seated.iter().filter(|s| s.0 == *key).map(|s| s.1).sum();
        assert_eq!(flow.held, held);
        assert!(held <= flow.share);
        let turns = pool.turns.iter().filter(|turn| *turn == key).count();
        assert_eq!(turns, usize::from(flow.in_turn));
    }
}
