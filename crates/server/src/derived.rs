//! Incremental views of stored objects, such as the RBAC index: updated by store watches, one change at a
//! time.
//!
//! A reader sees everything that was committed before it reads: a role binding applies to the next request
//! after its creation. The changes of one object arrive in order. The changes of different rows do not, so a
//! [`View`] must not depend on their order.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use kennel_store::{Event, Record, Revision, Store, Watch};

use crate::object::{self, Head};
use crate::registry::Resource;

/// How often a view that nobody reads catches up: well before the buffer of a watch is full.
const CATCH_UP_INTERVAL: Duration = Duration::from_millis(500);

/// How often a rebuild is attempted before a reader gets an empty view. An attempt fails only if the store
/// compacts its history during it.
const REBUILD_ATTEMPTS: usize = 3;

/// A view that is updated one change at a time.
pub(crate) trait View: Default + Send + Sync + 'static {
    /// Applies the change of one object; `None` before its creation and after its deletion.
    fn apply(
        &mut self,
        row: &'static Resource,
        before: Option<&Record<Head>>,
        after: Option<&Record<Head>>,
    );
}

/// A view with the watches that update it.
pub(crate) struct Follower<T> {
    store: Arc<dyn Store<Head>>,
    rows: Vec<&'static Resource>,
    state: RwLock<State<T>>,
}

struct State<T> {
    view: T,
    /// One per row; empty before the first read and after a watch has ended.
    watches: Vec<Watch<Head>>,
    /// The revision that the view is current up to.
    revision: Option<Revision>,
}

impl<T: View> State<T> {
    /// Whether the view has everything up to this revision. After a reset, revisions may be lower than before.
    fn is_current(&self, now: Revision) -> bool {
        self.revision.is_some_and(|revision| revision >= now)
            && !self.watches.iter().any(Watch::has_gap)
    }

    fn empty() -> Self {
        Self {
            view: T::default(),
            watches: Vec::new(),
            revision: None,
        }
    }
}

impl<T: View> Follower<T> {
    pub(crate) fn new(store: Arc<dyn Store<Head>>, rows: Vec<&'static Resource>) -> Self {
        Self {
            store,
            rows,
            state: RwLock::new(State::empty()),
        }
    }

    /// Calls `look` with the view, current up to everything committed so far.
    pub(crate) fn read<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        let now = self.store.revision();
        let state = self.shared();
        if state.is_current(now) {
            return look(&state.view);
        }
        drop(state);
        let mut state = self.exclusive();
        self.catch_up(&mut state, now);
        look(&state.view)
    }

    fn catch_up(&self, state: &mut State<T>, now: Revision) {
        // Another reader may have caught up while this one waited for the lock.
        if state.is_current(now) {
            return;
        }
        if state.watches.is_empty() {
            return self.rebuild(state);
        }
        let State { view, watches, .. } = state;
        let mut seen = Some(Revision::MAX);
        for (row, watch) in self.rows.iter().zip(watches) {
            match watch.try_next() {
                None => {}
                Some(Ok(events)) => events.iter().for_each(|event| apply(view, row, event)),
                Some(Err(_)) => return self.rebuild(state),
            }
            // Not the store's revision, which advances before the event is in the watch's buffer. A write
            // whose event is not in the buffer has not been answered yet.
            seen = seen.min(watch.progress());
        }
        state.revision = seen;
    }

    /// Rebuilds the view: at first, and when events were missed. If that fails, the view is empty until the
    /// next reader tries again, because outdated rights must not be granted.
    fn rebuild(&self, state: &mut State<T>) {
        let fresh = (0..REBUILD_ATTEMPTS).find_map(|_| self.build());
        *state = fresh.unwrap_or_else(State::empty);
    }

    /// The state at the current revision. `None`: the store compacted its history meanwhile.
    fn build(&self) -> Option<State<T>> {
        let from = self.store.revision();
        let prefixes = self.rows.iter().map(|row| object::prefix(row, None));
        let watches = prefixes.map(|prefix| self.store.watch(&prefix, from));
        let watches = watches.collect::<Result<Vec<_>, _>>().ok()?;
        let mut view = T::default();
        // Lists at `from` exactly: newer objects arrive as events, with their version before.
        for row in &self.rows {
            let prefix = object::prefix(row, None);
            let page = self.store.range_at(&prefix, from, None, None).ok()?;
            for record in &page.records {
                view.apply(row, None, Some(record));
            }
        }
        Some(State {
            view,
            watches,
            revision: Some(from),
        })
    }

    fn shared(&self) -> RwLockReadGuard<'_, State<T>> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn exclusive(&self) -> RwLockWriteGuard<'_, State<T>> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn apply<T: View>(view: &mut T, row: &'static Resource, event: &Event<Head>) {
    view.apply(row, event.before.as_deref(), event.after.as_deref());
}

/// Catches up while nobody reads, until the follower is dropped.
pub(crate) async fn keep_up<T: View>(follower: std::sync::Weak<Follower<T>>) {
    let mut ticks = tokio::time::interval(CATCH_UP_INTERVAL);
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
