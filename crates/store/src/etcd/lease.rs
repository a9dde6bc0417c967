//! The leases of etcd that objects with a lifetime expire with. Each is shared by what is written within a short time, as upstream
//! does.

use std::collections::HashMap;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

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
    by_lifetime: Mutex<HashMap<Duration, Shared>>,
}

#[derive(Clone, Copy)]
struct Shared {
    id: i64,
    until: Instant,
    objects: usize,
}

impl Leases {
    /// A lease that ends after the lifetime, a little later at most.
    pub(super) async fn get(
        &self,
        client: &Client,
        lifetime: Duration,
        within: Duration,
    ) -> Result<i64, CallError> {
        let mut leases = self.by_lifetime.lock().await;
        let now = Instant::now();
        if let Some(shared) = leases.get_mut(&lifetime)
            && shared.until > now
            && shared.objects < OBJECTS_MAX
        {
            shared.objects += 1;
            return Ok(shared.id);
        }
        let shared_for = SHARED_FOR_MAX.min(lifetime / SHARED_PART);
        let seconds = (lifetime + shared_for).as_secs_f64().ceil();
        #[expect(clippy::cast_possible_truncation, reason = "saturates")]
        let request = LeaseGrantRequest {
            ttl: seconds as i64,
        };
        let id = client.call(request, within).await?.id;
        let shared = Shared {
            id,
            until: now + shared_for,
            objects: 1,
        };
        leases.insert(lifetime, shared);
        Ok(id)
    }

    /// Etcd does not have this lease any more.
    pub(super) async fn forget(&self, id: i64) {
        let mut leases = self.by_lifetime.lock().await;
        leases.retain(|_, shared| shared.id != id);
    }
}
