//! A runtime that runs nothing: sandboxes and containers are entries in memory, and what containers do is read
//! from their commands ([`play`]).
//!
//! For one node that is driven by the whole agent (`--runtime=simulated`), and for tests of the agent. Thousands
//! of nodes at once are [`crate::simulated`]'s. There is nothing in such a container to look into.

mod play;
mod serve;
mod state;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{Error, Found, Result};
pub use state::Happening;
use state::State;

/// The code of what ends because it was asked to.
const TERMINATED: i32 = 143;
/// The code of what was killed.
const KILLED: i32 = 137;
/// Images of this registry cannot be had.
const NOWHERE: &str = "nowhere.invalid/";

/// See the [module](self). Copies are the same runtime.
#[derive(Clone)]
pub struct Simulated(Arc<Inner>);

struct Inner {
    state: Mutex<State>,
    listener: Mutex<Option<mpsc::Sender<String>>>,
    answers: Mutex<BTreeMap<String, i32>>,
    unavailable: Mutex<Option<String>>,
    stuck: Mutex<Option<String>>,
    /// How long each request takes.
    latency: Duration,
    began: Instant,
    epoch: i64,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Simulated {
    /// One that answers at once.
    pub fn new() -> Self {
        Self::with_latency(Duration::ZERO)
    }

    /// One that takes a while for each request.
    pub fn with_latency(latency: Duration) -> Self {
        Self(Arc::new(Inner {
            state: Mutex::default(),
            listener: Mutex::default(),
            answers: Mutex::default(),
            unavailable: Mutex::default(),
            stuck: Mutex::default(),
            latency,
            began: Instant::now(),
            epoch: jiff::Timestamp::now().as_second(),
        }))
    }

    /// From now on, this command returns that in every container.
    pub fn set_answer(&self, command: &str, code: i32) {
        locked(&self.0.answers).insert(command.to_owned(), code);
    }

    /// From now on, nothing can be asked of it, for this reason; or everything again.
    pub fn set_unavailable(&self, why: Option<&str>) {
        *locked(&self.0.unavailable) = why.map(str::to_owned);
        if why.is_none() {
            self.0.tell(String::new());
        }
    }

    /// From now on, nothing can be ended, for this reason; or everything again.
    pub fn set_stuck(&self, why: Option<&str>) {
        *locked(&self.0.stuck) = why.map(str::to_owned);
    }

    fn may_end(&self) -> Result<()> {
        match &*locked(&self.0.stuck) {
            Some(why) => Err(Error::Failed(why.clone())),
            None => Ok(()),
        }
    }

    /// A container ends by itself.
    pub fn crash(&self, id: &str, code: i32) {
        self.0.end(id, code);
    }

    /// A sandbox dies, and all in it.
    pub fn crash_sandbox(&self, id: &str) {
        let ended = self.0.state().end_sandbox(id, self.0.now());
        if let Some(uid) = ended {
            self.0.tell(uid);
        }
    }

    /// All that happened so far, with its time since the runtime began.
    pub fn happened(&self) -> Vec<(Duration, Happening)> {
        self.0.state().happened.clone()
    }

    /// All there is.
    pub fn all(&self) -> Vec<Found> {
        self.0.state().all()
    }

    async fn asked(&self) -> Result<()> {
        if !self.0.latency.is_zero() {
            tokio::time::sleep(self.0.latency).await;
        }
        match &*locked(&self.0.unavailable) {
            Some(why) => Err(Error::Unavailable(why.clone())),
            None => Ok(()),
        }
    }

    fn end_later(&self, id: &str, after: Duration, code: i32) {
        if after.is_zero() {
            return self.0.end(id, code);
        }
        let (inner, id) = (Arc::downgrade(&self.0), id.to_owned());
        tokio::spawn(async move {
            tokio::time::sleep(after).await;
            if let Some(inner) = inner.upgrade() {
                inner.end(&id, code);
            }
        });
    }
}

impl Default for Simulated {
    fn default() -> Self {
        Self::new()
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        let mut state = locked(&self.state);
        state.age = self.began.elapsed();
        state
    }

    /// Seconds since the epoch. They pass as the time of tasks does.
    fn now(&self) -> i64 {
        let passed = i64::try_from(self.began.elapsed().as_secs()).unwrap_or(i64::MAX);
        self.epoch.saturating_add(passed)
    }

    fn end(&self, id: &str, code: i32) {
        let ended = self.state().end(id, code, self.now());
        if let Some(uid) = ended {
            self.tell(uid);
        }
    }

    fn tell(&self, uid: String) {
        if let Some(listener) = &*locked(&self.listener) {
            // Whoever is that far behind looks anyway.
            let _full = listener.try_send(uid);
        }
    }
}
