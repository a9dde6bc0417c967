//! The processes of a round, and how they end: the server by SIGKILL or SIGTERM, an etcd by SIGKILL or SIGSTOP.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kennel_test_support::Etcd;
use kennel_testkit::{Access, Kennel, history};

use crate::server_faults::fixture::KENNEL;

/// How long the processes live between two faults, in milliseconds.
const LIFE_MS: std::ops::Range<u64> = 200..2_500;
/// How long an etcd is stopped: some elections.
const STOPPED_MS: std::ops::Range<u64> = 100..1_500;

/// Where the objects are, and what ends.
pub(super) enum Store {
    /// In the server's data directory.
    Own,
    /// The same, and nothing ends.
    Undisturbed,
    Etcd(Etcd),
}

/// The clock of a history.
#[derive(Clone, Copy)]
pub(super) struct Clock(Instant);

impl Clock {
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }

    pub(super) fn now(self) -> history::Instant {
        let elapsed = self.0.elapsed().as_nanos();
        history::Instant::try_from(elapsed).expect("a history of less than 500 years")
    }
}

/// Lets clients connect while a server listens, so that none of them takes its port meanwhile.
pub(super) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    is_up: bool,
    /// When each process began to listen.
    starts: Vec<history::Instant>,
}

impl Gate {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn up(&self, at: history::Instant) {
        let mut state = self.state();
        state.is_up = true;
        state.starts.push(at);
        drop(state);
        self.changed.notify_all();
    }

    fn down(&self) {
        self.state().is_up = false;
    }

    /// Waits until a server listens; returns which one.
    pub(super) fn wait(&self) -> usize {
        let state = self.state();
        let state = self.changed.wait_while(state, |state| !state.is_up);
        state.unwrap_or_else(PoisonError::into_inner).starts.len()
    }

    /// When the server after this one began to listen.
    pub(super) fn next_start(&self, server: usize) -> Option<history::Instant> {
        self.state().starts.get(server).copied()
    }
}

/// A server with its store.
pub(super) struct Processes {
    /// None only while it is replaced.
    kennel: Option<Kennel>,
    store: Store,
    arguments: Vec<String>,
    random: fastrand::Rng,
    pub(super) faults: usize,
}

impl Processes {
    pub(super) fn start(store: Store, seed: u64) -> Self {
        let mut arguments = vec!["server".to_owned(), "--dns-listen=off".to_owned()];
        if let Store::Etcd(etcd) = &store {
            arguments.extend(["--store".to_owned(), etcd.store()]);
        }
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        Self {
            kennel: Some(Kennel::start(KENNEL, &words)),
            store,
            random: fastrand::Rng::with_seed(seed),
            arguments,
            faults: 0,
        }
    }

    pub(super) fn access(&self) -> Access {
        let kennel = self.kennel.as_ref().expect("it runs");
        Access::admin(kennel.address(), &kennel.data_dir())
    }

    /// Whether the end of a server ends the writes that were sent to it: an etcd may still get them.
    pub(super) fn end_with_server(&self) -> bool {
        !matches!(self.store, Store::Etcd(_))
    }

    pub(super) fn log(&self) -> String {
        self.kennel.as_ref().map(Kennel::log).unwrap_or_default()
    }

    /// Lets the processes live and end for so long.
    pub(super) fn disturb(&mut self, time: Duration, gate: &Gate, clock: Clock) {
        let end = Instant::now() + time;
        loop {
            let life = Duration::from_millis(self.random.u64(LIFE_MS));
            let left = end.saturating_duration_since(Instant::now());
            std::thread::sleep(life.min(left));
            if Instant::now() >= end {
                return;
            }
            self.fail_once(gate, clock);
        }
    }

    fn fail_once(&mut self, gate: &Gate, clock: Clock) {
        let at_etcd = self.random.bool();
        match &mut self.store {
            Store::Undisturbed => return,
            Store::Etcd(etcd) if at_etcd => {
                if self.random.bool() {
                    etcd.restart();
                } else {
                    etcd.signal("STOP");
                    std::thread::sleep(Duration::from_millis(self.random.u64(STOPPED_MS)));
                    etcd.signal("CONT");
                }
            }
            Store::Own | Store::Etcd(_) => self.restart(gate, clock),
        }
        self.faults += 1;
    }

    fn restart(&mut self, gate: &Gate, clock: Clock) {
        let kennel = self.kennel.take().expect("it runs");
        gate.down();
        let again = if self.random.u8(..4) == 0 {
            let words: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
            kennel.come_back_with(&words)
        } else {
            kennel.crash_and_come_back()
        };
        self.kennel = Some(again);
        gate.up(clock.now());
    }
}
