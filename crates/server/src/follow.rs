//! Something derived from stored objects, kept up to date at the cost of the changes.
//!
//! Readers see everything that was committed before they asked: whoever has created a role binding
//! may rely on it with the next request. What is derived, and how, is the business of the room that
//! implements [`Derived`]: it is told of each object's changes in their order, but not of those of
//! different rows, so it must not depend on which of two rows' changes it hears of first.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use kennel_store::{Event, Record, Revision, Store, Watch};

use crate::object::{self, Head};
use crate::registry::Resource;

/// Events are taken at least this often even when nobody asks: well before a watch's buffer is full.
const TAKEN_EVERY: Duration = Duration::from_millis(500);

/// How often it is tried to derive everything anew before a reader does without: history must be dropped
/// between two lines of code for a try to fail.
const TRIES: usize = 3;

/// What can be derived from objects one change at a time.
pub(crate) trait Derived: Default + Send + Sync + 'static {
    /// Takes in what became of one object: what it was, what it is. `None` is not there.
    fn apply(
        &mut self,
        row: &'static Resource,
        before: Option<&Record<Head>>,
        after: Option<&Record<Head>>,
    );
}

/// A derived thing with the watches that feed it.
pub(crate) struct Follower<T> {
    store: Arc<dyn Store<Head>>,
    rows: Vec<&'static Resource>,
    state: RwLock<State<T>>,
}

struct State<T> {
    derived: T,
    /// One for each row; none before the first read and after a watch has ended.
    watches: Vec<Watch<Head>>,
    /// The revision up to which everything is in.
    seen: Option<Revision>,
}

impl<T: Derived> State<T> {
    fn empty() -> Self {
        Self {
            derived: T::default(),
            watches: Vec::new(),
            seen: None,
        }
    }
}

impl<T: Derived> Follower<T> {
    /// Follows the objects of these rows.
    pub(crate) fn new(store: Arc<dyn Store<Head>>, rows: Vec<&'static Resource>) -> Self {
        Self {
            store,
            rows,
            state: RwLock::new(State::empty()),
        }
    }

    /// Calls `look` with what is derived from everything committed so far.
    pub(crate) fn read<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        let now = self.store.revision();
        let state = self.shared();
        if state.seen.is_some_and(|seen| seen >= now) {
            return look(&state.derived);
        }
        drop(state);
        let mut state = self.exclusive();
        self.catch_up(&mut state, now);
        look(&state.derived)
    }

    fn catch_up(&self, state: &mut State<T>, now: Revision) {
        // Somebody else may have done it while this reader waited for the lock.
        if state.seen.is_some_and(|seen| seen >= now) {
            return;
        }
        if state.watches.is_empty() {
            return self.start_over(state);
        }
        let State {
            derived, watches, ..
        } = state;
        let mut seen = Some(Revision::MAX);
        for (row, watch) in self.rows.iter().zip(watches) {
            match watch.try_next() {
                None => {}
                Some(Ok(events)) => events.iter().for_each(|event| apply(derived, row, event)),
                Some(Err(_)) => return self.start_over(state),
            }
            // Not the store's revision: that moves before its event is in the watch's buffer. An event
            // that is on its way is of a write that has not been answered yet.
            seen = seen.min(watch.progress());
        }
        state.seen = seen;
    }

    /// Derives everything anew: at first, and when events were missed. If that cannot be done, it stays
    /// empty until the next reader tries again: rights that may be outdated are none.
    fn start_over(&self, state: &mut State<T>) {
        let fresh = (0..TRIES).find_map(|_| self.derive());
        *state = fresh.unwrap_or_else(State::empty);
    }

    /// The state at the present revision. `None`: history was dropped in between.
    fn derive(&self) -> Option<State<T>> {
        let from = self.store.revision();
        let prefixes = self.rows.iter().map(|row| object::prefix(row, None));
        let watches = prefixes.map(|prefix| self.store.watch(&prefix, from));
        let watches = watches.collect::<Result<Vec<_>, _>>().ok()?;
        let mut derived = T::default();
        // What is listed may be newer than `from`: such objects come again as events, with what they
        // were before. So only what was there at `from` is taken from the list.
        for row in &self.rows {
            let prefix = object::prefix(row, None);
            let page = self.store.range_at(&prefix, from, None, None).ok()?;
            for record in &page.records {
                derived.apply(row, None, Some(record));
            }
        }
        Some(State {
            derived,
            watches,
            seen: Some(from),
        })
    }

    fn shared(&self) -> RwLockReadGuard<'_, State<T>> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn exclusive(&self) -> RwLockWriteGuard<'_, State<T>> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn apply<T: Derived>(derived: &mut T, row: &'static Resource, event: &Event<Head>) {
    derived.apply(row, event.before.as_deref(), event.after.as_deref());
}

/// Takes events in while nobody asks, until the follower is dropped.
pub(crate) async fn keep_up<T: Derived>(follower: std::sync::Weak<Follower<T>>) {
    let mut ticks = tokio::time::interval(TAKEN_EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    loop {
        ticks.tick().await;
        let Some(follower) = follower.upgrade() else {
            return;
        };
        follower.read(|_| ());
    }
}

#[cfg(test)]
mod tests;
