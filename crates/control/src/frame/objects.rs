//! A controller that looks at each object by itself, with an async function.
//!
//! One job at a time looks at an object, always at its latest version. The job says whether it is
//! [`Done`](Verdict::Done) with the object until that changes, or wants to [`Retry`](Verdict::Retry) after a backoff.

use std::collections::HashMap;
use std::sync::Arc;

use kennel_client::backoff::{self, Policy};
use kennel_client::pace::Pace;
use kube::Resource;

use super::{Context, Controller, Update};

/// What to do after a job has looked at an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing, until the object changes.
    Done,
    /// Look again after the backoff.
    Retry,
}

/// See the [module](self).
pub struct Objects<K, R> {
    name: &'static str,
    at_once: usize,
    backoff: Policy,
    is_relevant: fn(&K) -> bool,
    reconcile: R,
    entries: HashMap<Arc<str>, Entry<K>>,
}

/// A relevant object, by uid.
struct Entry<K> {
    latest: Arc<K>,
    /// A job looks at it.
    busy: bool,
    /// It has changed since that job began.
    changed: bool,
    failures: u32,
}

/// The uid of an object, and what is due.
pub enum Outcome {
    Reconciled(Arc<str>, Verdict),
    RetryDue(Arc<str>),
}

impl<K, R, F> Objects<K, R>
where
    R: Fn(Arc<K>) -> F,
    F: Future<Output = Verdict> + Send + 'static,
{
    /// Calls `reconcile` for each object for which `is_relevant` holds, `at_once` objects in parallel, and after the
    /// `backoff` again where it asks for that. `name` is for the log.
    pub fn new(
        name: &'static str,
        at_once: usize,
        backoff: Policy,
        is_relevant: fn(&K) -> bool,
        reconcile: R,
    ) -> Self {
        Self {
            name,
            at_once,
            backoff,
            is_relevant,
            reconcile,
            entries: HashMap::new(),
        }
    }

    fn spawn<C: Controller<Outcome = Outcome>>(&mut self, uid: &Arc<str>, cx: &mut Context<C>) {
        let Some(entry) = self.entries.get_mut(uid).filter(|entry| !entry.busy) else {
            return;
        };
        (entry.busy, entry.changed) = (true, false);
        let (uid, job) = (uid.clone(), (self.reconcile)(entry.latest.clone()));
        cx.spawn(async move { Outcome::Reconciled(uid, job.await) });
    }
}

impl<K, R, F> Controller for Objects<K, R>
where
    K: Resource + Send + Sync + 'static,
    R: Fn(Arc<K>) -> F + Send + 'static,
    F: Future<Output = Verdict> + Send + 'static,
{
    type Event = Update<Arc<K>>;
    type Outcome = Outcome;

    fn name(&self) -> &'static str {
        self.name
    }

    fn pace(&self) -> Pace {
        Pace::steady(self.at_once)
    }

    fn handle(&mut self, event: Self::Event, cx: &mut Context<Self>) {
        match event {
            Update::Applied(object) if (self.is_relevant)(&object) => {
                let uid: Arc<str> = object.meta().uid.as_deref().unwrap_or_default().into();
                let entry = self.entries.entry(uid.clone()).or_insert_with(|| Entry {
                    latest: object.clone(),
                    busy: false,
                    changed: false,
                    failures: 0,
                });
                (entry.latest, entry.changed) = (object, true);
                self.spawn(&uid, cx);
            }
            Update::Applied(object) => {
                let uid = object.meta().uid.as_deref().unwrap_or_default();
                self.entries.remove(uid);
            }
            Update::Gone(id) => drop(self.entries.remove(&id.uid)),
        }
    }

    fn completed(&mut self, outcome: Outcome, cx: &mut Context<Self>) {
        match outcome {
            Outcome::RetryDue(uid) => self.spawn(&uid, cx),
            Outcome::Reconciled(uid, verdict) => {
                let Some(entry) = self.entries.get_mut(&uid) else {
                    return;
                };
                entry.busy = false;
                if entry.changed {
                    self.spawn(&uid, cx);
                } else if verdict == Verdict::Retry {
                    let delay = backoff::delay(&self.backoff, entry.failures);
                    entry.failures = entry.failures.saturating_add(1);
                    cx.after(delay, Outcome::RetryDue(uid));
                }
            }
        }
    }
}
