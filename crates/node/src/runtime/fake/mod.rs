//! A container runtime that runs nothing: sandboxes and containers are entries in memory, and a container does what
//! its command says ([`script`]).
//!
//! For one node that the whole agent drives (`--runtime=simulated`), and for tests of the agent. Thousands of nodes in
//! one process are `kennel_simulation`'s. Exec, attach, logs and port-forward are refused.

mod script;
mod serve;
mod state;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use kennel_client::clock;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{Error, Found, Result};
use crate::sync::lock;
pub use state::RuntimeEvent;
use state::State;

/// Exit code of a container that stops on SIGTERM.
const TERMINATED: i32 = 143;
/// Exit code of a container that is killed.
const KILLED: i32 = 137;
/// Images of this registry cannot be pulled.
const UNPULLABLE_REGISTRY: &str = "nowhere.invalid/";

/// See the [module](self). Clones share their state.
#[derive(Clone)]
pub struct FakeRuntime(Arc<Inner>);

struct Inner {
    state: Mutex<State>,
    listener: Mutex<Option<mpsc::Sender<String>>>,
    exec_exit_codes: Mutex<BTreeMap<String, i32>>,
    /// Why every request fails, if so.
    unavailable: Mutex<Option<String>>,
    /// Why nothing can be stopped, if so.
    stuck: Mutex<Option<String>>,
    /// Delay of each request.
    latency: Duration,
    created_at: Instant,
    epoch: i64,
}

impl FakeRuntime {
    pub fn new() -> Self {
        Self::with_latency(Duration::ZERO)
    }

    /// Delays each request by `latency`.
    pub fn with_latency(latency: Duration) -> Self {
        Self(Arc::new(Inner {
            state: Mutex::default(),
            listener: Mutex::default(),
            exec_exit_codes: Mutex::default(),
            unavailable: Mutex::default(),
            stuck: Mutex::default(),
            latency,
            created_at: Instant::now(),
            epoch: clock::now().as_secs(),
        }))
    }

    /// From now on, executing this command returns that exit code in every container.
    pub fn set_exec_exit_code(&self, command: &str, code: i32) {
        lock(&self.0.exec_exit_codes).insert(command.to_owned(), code);
    }

    /// From now on, every request fails with this message; `None` ends that.
    pub fn set_unavailable(&self, why: Option<&str>) {
        *lock(&self.0.unavailable) = why.map(str::to_owned);
        if why.is_none() {
            self.0.notify(String::new());
        }
    }

    /// From now on, stopping fails with this message; `None` ends that.
    pub fn set_stuck(&self, why: Option<&str>) {
        *lock(&self.0.stuck) = why.map(str::to_owned);
    }

    fn check_not_stuck(&self) -> Result<()> {
        match &*lock(&self.0.stuck) {
            Some(why) => Err(Error::Failed(why.clone())),
            None => Ok(()),
        }
    }

    /// Makes a container exit by itself.
    pub fn crash(&self, id: &str, code: i32) {
        self.0.exit(id, code);
    }

    /// Changes the runtime's reason for the exit of a container.
    pub fn correct_exit(&self, id: &str, reason: &str) {
        let pod = self.0.state().correct_exit(id, reason);
        if let Some(uid) = pod {
            self.0.notify(uid);
        }
    }

    /// Makes a sandbox die with all its containers.
    pub fn crash_sandbox(&self, id: &str) {
        let pod = self.0.state().exit_sandbox(id, self.0.now());
        if let Some(uid) = pod {
            self.0.notify(uid);
        }
    }

    /// What happened so far, each with its time since the runtime was made.
    pub fn history(&self) -> Vec<(Duration, RuntimeEvent)> {
        self.0.state().history.clone()
    }

    /// All pods with their sandboxes and containers.
    pub fn all(&self) -> Vec<Found> {
        self.0.state().all()
    }

    async fn begin_request(&self) -> Result<()> {
        if !self.0.latency.is_zero() {
            tokio::time::sleep(self.0.latency).await;
        }
        match &*lock(&self.0.unavailable) {
            Some(why) => Err(Error::Unavailable(why.clone())),
            None => Ok(()),
        }
    }

    fn exit_later(&self, id: &str, after: Duration, code: i32) {
        if after.is_zero() {
            return self.0.exit(id, code);
        }
        let (inner, id) = (Arc::downgrade(&self.0), id.to_owned());
        tokio::spawn(async move {
            tokio::time::sleep(after).await;
            if let Some(inner) = inner.upgrade() {
                inner.exit(&id, code);
            }
        });
    }
}

impl Default for FakeRuntime {
    fn default() -> Self {
        Self::new()
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        let mut state = lock(&self.state);
        state.age = self.created_at.elapsed();
        state
    }

    /// Seconds since the epoch, advanced by tokio's clock, which tests control.
    fn now(&self) -> kennel_types::Timestamp {
        let passed = i64::try_from(self.created_at.elapsed().as_secs()).unwrap_or(i64::MAX);
        kennel_types::Timestamp::from_secs(self.epoch.saturating_add(passed))
    }

    fn exit(&self, id: &str, code: i32) {
        let pod = self.state().exit(id, code, self.now());
        if let Some(uid) = pod {
            self.notify(uid);
        }
    }

    fn notify(&self, uid: String) {
        if let Some(listener) = &*lock(&self.listener) {
            // The channel carries hints: a listener whose channel is full relists.
            let _full = listener.try_send(uid);
        }
    }
}
