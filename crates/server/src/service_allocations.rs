//! What writes of services allocate that memory does not show: those under way, those whose requests were abandoned, and those whose
//! outcome is not known. No other service may get their addresses and ports.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use kennel_store::{Revision, Store, WriteError, Written};

use crate::object::Head;

/// How many writes are remembered. One whose outcome is not known takes the store eight seconds, and one service is written at a time, so
/// that a forgotten one is more than two hours old.
const WRITES_MAX: usize = 1_024;

type Outcome = Result<Written<Head>, WriteError<Head>>;

#[derive(Default)]
pub(crate) struct Allocations(Mutex<State>);

#[derive(Default)]
struct State {
    next_id: u64,
    writes: VecDeque<Allocated>,
}

struct Allocated {
    id: u64,
    key: String,
    /// The revision that the write replaces; 0 if it creates the service.
    expected: Revision,
    /// That of the write, if it is known to be stored.
    stored: Option<Revision>,
    value: Bytes,
}

impl Allocated {
    /// Of two writes that replace the same revision, at most one is stored.
    fn is_shown(&self, store: &dyn Store<Head>) -> bool {
        if let Some(revision) = self.stored {
            return store.revision() >= revision;
        }
        let current = store.get(&self.key);
        current.is_some_and(|current| current.modified > self.expected)
    }
}

impl Allocations {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Before a service is written. What the write allocates stays allocated if the guard is dropped.
    pub(crate) fn begin(&self, key: &str, expected: Revision, value: &Bytes) -> UnderWay<'_> {
        let mut state = self.state();
        let id = state.next_id;
        state.next_id += 1;
        if state.writes.len() >= WRITES_MAX {
            state.writes.pop_front();
        }
        state.writes.push_back(Allocated {
            id,
            key: key.to_owned(),
            expected,
            stored: None,
            value: value.clone(),
        });
        UnderWay { all: self, id }
    }

    /// Before a service is replaced or removed: its earlier writes that memory shows need not be remembered, and are not recognised
    /// any more once the service is gone.
    pub(crate) fn forget_shown(&self, store: &dyn Store<Head>) {
        self.state().writes.retain(|write| !write.is_shown(store));
    }

    /// The services of these writes, without those of one key: it may have what its own writes allocate.
    pub(crate) fn others(&self, store: &dyn Store<Head>, key: &str) -> Vec<Bytes> {
        self.forget_shown(store);
        let state = self.state();
        let others = state.writes.iter().filter(|write| write.key != key);
        others.map(|write| write.value.clone()).collect()
    }
}

/// A write of a service.
pub(crate) struct UnderWay<'a> {
    all: &'a Allocations,
    id: u64,
}

impl UnderWay<'_> {
    /// The store has answered.
    pub(crate) fn end(self, outcome: &Outcome) {
        let mut state = self.all.state();
        let Some(at) = state.writes.iter().position(|write| write.id == self.id) else {
            return;
        };
        match outcome {
            Ok(written) => state.writes[at].stored = Some(written.revision),
            Err(WriteError::Unknown(_)) => {}
            // Nothing was stored.
            Err(_) => drop(state.writes.remove(at)),
        }
    }
}
