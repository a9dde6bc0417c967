//! Waits until memory shows a revision, and its events are in the buffers of all watches: what derives from watches, such as
//! rights, is then as new as memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::memory::Memory;
use crate::record::Revision;

pub(super) struct Shown<H> {
    memory: Arc<Memory<H>>,
    waiting: Mutex<BTreeMap<Revision, Vec<oneshot::Sender<()>>>>,
}

impl<H> Shown<H> {
    pub(super) fn new(memory: Arc<Memory<H>>) -> Self {
        Self {
            memory,
            waiting: Mutex::default(),
        }
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeMap<Revision, Vec<oneshot::Sender<()>>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether memory shows the revision in time.
    pub(super) async fn wait(&self, revision: Revision, deadline: Instant) -> bool {
        if self.memory.delivered() >= revision {
            return true;
        }
        let _waiter = Waiter {
            shown: self,
            revision,
        };
        let (send, receive) = oneshot::channel();
        {
            let mut waiting = self.waiting();
            // Again, now that the feed sees this waiter.
            if self.memory.delivered() >= revision {
                return true;
            }
            waiting.entry(revision).or_default().push(send);
        }
        tokio::time::timeout_at(deadline, receive).await.is_ok()
            && self.memory.delivered() >= revision
    }

    /// Memory has moved on: wakes those whose turn has come.
    pub(super) fn moved(&self) {
        let shown = self.memory.delivered();
        let mut waiting = self.waiting();
        let later = waiting.split_off(&(shown + 1));
        let reached = std::mem::replace(&mut *waiting, later);
        drop(waiting);
        // Dropping the senders wakes them, too.
        drop(reached);
    }

    /// Wakes everybody: memory may never get there.
    pub(super) fn give_up(&self) {
        let all = std::mem::take(&mut *self.waiting());
        drop(all);
    }
}

/// Forgets one who does not wait any more: memory may never reach the revision. Declared before the receiver, and so dropped after it.
struct Waiter<'a, H> {
    shown: &'a Shown<H>,
    revision: Revision,
}

impl<H> Drop for Waiter<'_, H> {
    fn drop(&mut self) {
        let mut waiting = self.shown.waiting();
        if let Some(all) = waiting.get_mut(&self.revision) {
            all.retain(|sender| !sender.is_closed());
            if all.is_empty() {
                waiting.remove(&self.revision);
            }
        }
    }
}
