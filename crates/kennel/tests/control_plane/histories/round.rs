//! One round: a server, clients and watchers for some seconds, and what they saw.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kennel_testkit::history::{Answer, Call, History, NEVER, Seen};
use kennel_testkit::{Access, Deadline};

use super::answers::PREFIX;
use super::client::Client;
use super::faults::{Clock, Gate, Processes, Store};
use super::watcher::Watcher;

const CLIENTS: usize = 6;
/// Few enough that clients meet at each.
const OBJECTS: usize = 5;
/// How long watchers may take for the last event after the last write.
const DELIVERY_SECONDS: u64 = 60;

/// What clients and watchers share.
pub(super) struct Shared {
    pub(super) access: Access,
    pub(super) clock: Clock,
    pub(super) gate: Gate,
    /// Clients end.
    pub(super) is_over: AtomicBool,
    /// Watchers end when they have got this far.
    pub(super) last: AtomicU64,
    /// The last state of each object that somebody saw.
    pub(super) newest: Mutex<Vec<Option<Seen>>>,
}

impl Shared {
    pub(super) fn newest(&self, object: usize) -> Option<Seen> {
        let newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        newest[object].clone()
    }

    pub(super) fn remember(&self, object: usize, seen: &Seen) {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        newest[object] = Some(seen.clone());
    }
}

/// The name of an object.
pub(super) fn key(object: usize) -> String {
    format!("{PREFIX}{object}")
}

/// What a round saw.
pub(super) struct Round {
    pub(super) history: History,
    pub(super) faults: usize,
}

impl Round {
    pub(super) fn run(seed: u64, store: Store, time: Duration) -> Self {
        let mut processes = Processes::start(store, seed);
        let shared = Arc::new(Shared {
            access: processes.access(),
            clock: Clock::start(),
            gate: Gate::new(),
            is_over: AtomicBool::new(false),
            last: AtomicU64::new(u64::MAX),
            newest: Mutex::new(vec![None; OBJECTS + 1]),
        });
        shared.gate.up(shared.clock.now());
        let watchers: Vec<_> = Watcher::several(&shared, seed)
            .into_iter()
            .map(|watcher| std::thread::spawn(move || watcher.run()))
            .collect();
        let clients = (0..CLIENTS).map(|number| {
            let client = Client::new(number, seed, &shared);
            std::thread::spawn(move || client.run(OBJECTS))
        });
        let clients: Vec<_> = clients.collect();
        processes.disturb(time, &shared.gate, shared.clock);
        shared.is_over.store(true, Ordering::SeqCst);
        let ends_with_server = processes.end_with_server();
        let mut history = History::default();
        for client in clients {
            let client = client.join().expect("a client ends without a panic");
            history.lists.extend(client.lists);
            for (server, mut operation) in client.operations {
                if operation.answer == Answer::Unknown {
                    let next = shared.gate.next_start(server).filter(|_| ends_with_server);
                    operation.returned = next.unwrap_or(NEVER);
                }
                history.operations.push(operation);
            }
        }
        finish(&shared, &mut history);
        for watcher in watchers {
            let stream = watcher.join().expect("a watcher ends without a panic");
            history.streams.push(stream);
        }
        let log = processes.log();
        assert!(!log.contains("panicked"), "{log}");
        Self {
            history,
            faults: processes.faults,
        }
    }
}

/// A last write, which all watchers must see: one that does not come to it within its deadline fails.
fn finish(shared: &Arc<Shared>, history: &mut History) {
    let deadline = Deadline::seconds(DELIVERY_SECONDS);
    let mut client = Client::new(CLIENTS, 0, shared);
    while shared.last.load(Ordering::SeqCst) == u64::MAX {
        assert!(!deadline.passed(), "no write succeeds after the last fault");
        client.call(OBJECTS, |token| Call::Patch {
            token,
            revision: None,
        });
        client.call(OBJECTS, |token| Call::Create { token });
        if let Some((_, last)) = client.operations.last()
            && let Answer::Shown(seen) = &last.answer
        {
            shared.last.store(seen.revision, Ordering::SeqCst);
        } else if let Some(seen) = shared.newest(OBJECTS) {
            shared.last.store(seen.revision, Ordering::SeqCst);
        }
    }
    client.list();
    history.lists.extend(client.lists);
    let operations = client.operations.into_iter();
    history
        .operations
        .extend(operations.map(|(_, operation)| operation));
}
