//! The leases of etcd that objects with a lifetime expire with. Each is shared by what is written within a short time, as upstream
//! does.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::client::Client;
use super::error::CallError;
use super::proto::LeaseGrantRequest;

/// For how long at most one lease is given out.
const SHARED_FOR_MAX: Duration = Duration::from_mins(1);
/// For which part of the lifetime at most.
const SHARED_PART: u32 = 20;
/// To how many objects: all of them are deleted at one revision.
const OBJECTS_MAX: usize = 1_000;

#[derive(Default)]
pub(super) struct Leases {
    state: Mutex<State>,
    /// A request for a lease has ended.
    asked: Notify,
}

#[derive(Default)]
struct State {
    by_lifetime: HashMap<Duration, Shared>,
    /// The lifetimes that etcd is being asked for a lease of.
    asking: HashSet<Duration>,
}

#[derive(Clone, Copy)]
struct Shared {
    id: i64,
    until: Instant,
    objects: usize,
}

/// What a write does that needs a lease.
enum Turn {
    Take(i64),
    /// Another write asks etcd.
    Wait,
    Ask,
}

impl Leases {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A lease that ends after the lifetime, a little later at most. One write asks etcd; the others wait, none beyond its own
    /// deadline.
    pub(super) async fn get(
        &self,
        client: &Client,
        lifetime: Duration,
        deadline: Instant,
    ) -> Result<i64, CallError> {
        loop {
            let asked = self.asked.notified();
            tokio::pin!(asked);
            // Registered before the look, so that no end is missed.
            asked.as_mut().enable();
            match self.turn(lifetime) {
                Turn::Take(id) => return Ok(id),
                Turn::Ask => return self.ask(client, lifetime, deadline).await,
                Turn::Wait => {
                    let waited = timeout_at(deadline, asked).await;
                    let late = |_| CallError::NotDone("etcd gave no lease in time".to_owned());
                    waited.map_err(late)?;
                }
            }
        }
    }

    fn turn(&self, lifetime: Duration) -> Turn {
        let mut state = self.lock();
        if let Some(shared) = state.by_lifetime.get_mut(&lifetime)
            && shared.until > Instant::now()
            && shared.objects < OBJECTS_MAX
        {
            shared.objects += 1;
            return Turn::Take(shared.id);
        }
        if state.asking.insert(lifetime) {
            Turn::Ask
        } else {
            Turn::Wait
        }
    }

    async fn ask(
        &self,
        client: &Client,
        lifetime: Duration,
        deadline: Instant,
    ) -> Result<i64, CallError> {
        let _asking = Asking {
            leases: self,
            lifetime,
        };
        let now = Instant::now();
        let shared_for = SHARED_FOR_MAX.min(lifetime / SHARED_PART);
        let seconds = (lifetime + shared_for).as_secs_f64().ceil();
        #[expect(clippy::cast_possible_truncation, reason = "saturates")]
        let request = LeaseGrantRequest {
            ttl: seconds as i64,
        };
        let within = deadline.saturating_duration_since(now);
        let id = client.call(request, within).await?.id;
        let shared = Shared {
            id,
            until: now + shared_for,
            objects: 1,
        };
        self.lock().by_lifetime.insert(lifetime, shared);
        Ok(id)
    }

    /// Etcd does not have this lease any more.
    pub(super) fn forget(&self, id: i64) {
        self.lock().by_lifetime.retain(|_, shared| shared.id != id);
    }
}

/// Lets the next write ask when it is dropped.
struct Asking<'a> {
    leases: &'a Leases,
    lifetime: Duration,
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.leases.lock().asking.remove(&self.lifetime);
        self.leases.asked.notify_waiters();
    }
}
