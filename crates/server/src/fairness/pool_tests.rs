//! The pool, step by step.

use super::*;
use kennel_test_support::with_seeds;

/// A pool whose waiters are notified by name.
struct Fixture {
    pool: Pool<&'static str>,
    share: u32,
    queue: usize,
}

fn fixture(seats: u32, share: u32, queue: usize) -> Fixture {
    Fixture {
        pool: Pool::new(seats, 100),
        share,
        queue,
    }
}

impl Fixture {
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
        pool.taken == 0 && pool.waiting == 0 && pool.flows.is_empty() && pool.rotation.is_empty()
    }
}

#[test]
fn a_flow_gets_its_share_and_then_waits_and_is_then_refused() {
    let mut fixture = fixture(10, 2, 1);
    fixture.sits(1, 1);
    fixture.sits(1, 1);
    fixture.waits(1, 1, "third");
    assert_eq!(fixture.ask(1, 1, "fourth"), Answer::Refused);
    // Other flows are not affected.
    fixture.sits(2, 2);
    assert_eq!(fixture.pool.release(1, 1), ["third"]);
    assert_eq!(fixture.pool.taken(), 4);
}

#[test]
fn waiters_are_seated_round_robin_over_flows() {
    let mut fixture = fixture(2, 2, 10);
    fixture.sits(1, 2);
    for name in ["a1", "a2", "a3"] {
        fixture.waits(2, 1, name);
    }
    fixture.waits(3, 1, "b1");
    fixture.waits(4, 1, "c1");
    assert_eq!(fixture.pool.release(1, 2), ["a1", "b1"]);
    assert_eq!(fixture.pool.release(2, 1), ["c1"]);
    assert_eq!(fixture.pool.release(3, 1), ["a2"]);
    assert_eq!(fixture.pool.release(4, 1), ["a3"]);
}

#[test]
fn nobody_overtakes_the_queue() {
    let mut fixture = fixture(2, 2, 10);
    fixture.sits(1, 2);
    fixture.waits(2, 2, "wide");
    fixture.waits(3, 1, "narrow");
    // One seat is free, and "wide" is before everybody who could take it.
    assert!(fixture.pool.release(1, 1).is_empty());
    fixture.waits(4, 1, "late");
    assert_eq!(fixture.pool.release(1, 1), ["wide"]);
    assert_eq!(fixture.pool.release(2, 2), ["narrow", "late"]);
}

#[test]
fn a_flow_at_its_share_does_not_block_others() {
    let mut fixture = fixture(4, 2, 10);
    fixture.sits(1, 2);
    fixture.waits(1, 1, "greedy");
    fixture.sits(2, 2);
    fixture.waits(3, 1, "modest");
    assert_eq!(fixture.pool.release(2, 2), ["modest"]);
    fixture.sits(3, 1);
    assert_eq!(fixture.pool.release(1, 1), ["greedy"]);
}

#[test]
fn the_width_is_capped_at_the_share() {
    let mut fixture = fixture(10, 3, 0);
    assert_eq!(fixture.ask(1, 100, "-"), Answer::Seated(3));
    assert_eq!(fixture.ask(1, 1, "-"), Answer::Refused);
    assert!(fixture.pool.release(1, 3).is_empty());
    assert!(fixture.is_empty());
}

#[test]
fn a_waiter_that_gives_up_lets_the_next_one_through() {
    let mut fixture = fixture(2, 2, 10);
    fixture.sits(1, 1);
    let wide = fixture.waits(2, 2, "wide");
    fixture.waits(3, 1, "narrow");
    assert_eq!(fixture.pool.cancel(2, wide, 2), ["narrow"]);
    assert_eq!(fixture.pool.waiting(), 0);
}

#[test]
fn a_waiter_that_gives_up_after_it_was_seated_gives_the_seat_back() {
    let mut fixture = fixture(1, 1, 10);
    fixture.sits(1, 1);
    let ticket = fixture.waits(2, 1, "gone");
    fixture.waits(3, 1, "next");
    assert_eq!(fixture.pool.release(1, 1), ["gone"]);
    assert_eq!(fixture.pool.cancel(2, ticket, 1), ["next"]);
    assert!(fixture.pool.release(3, 1).is_empty());
    assert!(fixture.is_empty());
}

#[test]
fn the_total_queue_is_bounded() {
    let mut fixture = fixture(1, 1, 10);
    fixture.pool.waiting_max = 2;
    fixture.sits(1, 1);
    fixture.waits(2, 1, "a");
    fixture.waits(3, 1, "b");
    assert_eq!(fixture.ask(4, 1, "c"), Answer::Refused);
    assert!(
        !fixture.pool.flows.contains_key(&4),
        "no trace of the refused"
    );
}

/// Random comings and goings: never more seats than there are, never more than a share, and in the end
/// everybody who waited was seated or went, and nothing is left behind.
#[test]
fn random_operations_keep_the_invariants() {
    with_seeds(0..200, |seed| {
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
                    pool.release(flow, width)
                }
                _ => match waiting.pop_first() {
                    Some((_, (flow, ticket, width))) => pool.cancel(flow, ticket, width),
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
            for (flow, width, step) in pool.release(flow, width) {
                waiting.remove(&step).expect("only those who wait are told");
                seated.push((flow, width));
            }
        }
        assert!(waiting.is_empty(), "seed {seed}: somebody waits for ever");
        assert!(pool.flows.is_empty() && pool.rotation.is_empty() && pool.taken == 0);
    });
}

fn balance<W>(pool: &Pool<W>, seated: &[(u64, u32)], waiting: usize) {
    assert_eq!(pool.taken, seated.iter().map(|s| s.1).sum::<u32>());
    assert!(pool.taken <= pool.seats);
    assert_eq!(pool.waiting, waiting);
    for (key, flow) in &pool.flows {
        let held: u32 = seated.iter().filter(|s| s.0 == *key).map(|s| s.1).sum();
        assert_eq!(flow.held, held);
        assert!(held <= flow.share);
        let rotation = pool.rotation.iter().filter(|turn| *turn == key).count();
        assert_eq!(rotation, usize::from(flow.in_rotation));
    }
}
