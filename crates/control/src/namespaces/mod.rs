//! The namespace controller: empties namespaces that are being deleted, and lets them go.
//!
//! What remains is told in the namespace's conditions, as [`kennel_core::garbage::namespace`] says.

mod empty;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::StreamExt as _;
use kennel_client::Error;
use kennel_client::feed::{self, Change};
use kennel_client::fence::Fence;
use kennel_client::work::Work;
use kennel_client::write::Writer;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::runtime::watcher::Config;
use tokio_util::sync::CancellationToken;

use empty::{Emptied, Emptier};

/// How many namespaces are emptied at once.
const AT_ONCE: usize = 16;
/// How long after its deletion began a namespace is left alone: for writes that were let in before.
const SETTLE: Duration = Duration::from_secs(1);
/// How long to wait before a namespace that was not empty is looked at again; doubled each time.
const AGAIN: Duration = Duration::from_millis(100);
/// The wait is doubled at most so often: to 12.8 s.
const AGAIN_DOUBLINGS: u32 = 7;

enum Ended {
    Due(Arc<str>),
    Tried(Arc<str>, Emptied),
}

struct Controller {
    emptier: Arc<Emptier>,
    /// Namespaces that are being deleted, by uid: name, and how often they were not empty.
    leaving: BTreeMap<Arc<str>, (Arc<str>, u32)>,
    work: Work<Ended>,
}

/// Runs until told to stop.
pub async fn run(client: Client, stop: CancellationToken) -> Result<(), Error> {
    tracing::info!("namespace controller started");
    let kind = ApiResource::erase::<k8s_openapi::api::core::v1::Namespace>(&());
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
    let mut seen = feed::watch(api, Config::default(), "namespaces");
    let writer = Writer::new(client.clone(), Fence::open());
    let mut controller = Controller {
        emptier: Arc::new(Emptier::new(client, writer)),
        leaving: BTreeMap::new(),
        work: Work::new(AT_ONCE),
    };
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            change = seen.next() => match change {
                Some(change) => controller.saw(change),
                None => return Err(Error::WatchEnded("namespaces")),
            },
            ended = controller.work.next() => controller.ended(ended),
        }
    }
    controller.work.finish().await;
    tracing::info!("namespace controller stopped");
    Ok(())
}

impl Controller {
    fn saw(&mut self, change: Change<DynamicObject>) {
        match change {
            Change::Applied(object) => {
                let meta = &object.metadata;
                let uid: Arc<str> = meta.uid.as_deref().unwrap_or_default().into();
                if meta.deletion_timestamp.is_some() && !self.leaving.contains_key(&uid) {
                    let name = meta.name.as_deref().unwrap_or_default().into();
                    self.leaving.insert(uid.clone(), (name, 0));
                    self.work.later(SETTLE, Ended::Due(uid));
                }
            }
            Change::Gone(id) => {
                self.leaving.remove(&id.uid);
            }
            Change::Synced => {}
        }
    }

    fn ended(&mut self, ended: Ended) {
        match ended {
            Ended::Due(uid) => {
                let Some((name, _)) = self.leaving.get(&uid) else {
                    return;
                };
                let (emptier, name) = (self.emptier.clone(), name.clone());
                self.work.push(async move {
                    let emptied = emptier.empty(&name, &uid).await;
                    Ended::Tried(uid, emptied)
                });
            }
            Ended::Tried(_, Emptied::Finalized) => {}
            Ended::Tried(uid, Emptied::NotYet) => {
                if let Some((_, tries)) = self.leaving.get_mut(&uid) {
                    let delay = AGAIN * 2_u32.pow((*tries).min(AGAIN_DOUBLINGS));
                    *tries += 1;
                    self.work.later(delay, Ended::Due(uid));
                }
            }
        }
    }
}
