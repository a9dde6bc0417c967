//! The namespace controller: deletes the content of namespaces that are being deleted, and finalizes them.
//!
//! What remains is reported in the namespace's conditions, as [`kennel_core::garbage::namespace`] says.

mod content;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kennel_client::Error;
use kennel_client::backoff::{self, Policy};
use kennel_client::feed;
use kennel_client::pace::Pace;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::runtime::watcher::Config;

use crate::frame::{self, Context, Controller, Setup, Update, Watches};
use content::{ContentDeleter, Progress};

/// How many namespaces are deleted at once.
const AT_ONCE: usize = 16;
/// How long to wait after the deletion began, for writes that were admitted before it.
const SETTLE: Duration = Duration::from_secs(1);
/// Before a namespace that still has content is tried again.
const RETRY: Policy =
    Policy::exponential(Duration::from_millis(100), Duration::from_millis(12_800));

/// A namespace is named by its uid.
enum Outcome {
    Due(Arc<str>),
    Tried(Arc<str>, Progress),
}

struct NamespaceController {
    deleter: Arc<ContentDeleter>,
    /// Namespaces that are being deleted, by uid: the name, and how often content remained.
    terminating: BTreeMap<Arc<str>, (Arc<str>, u32)>,
}

/// Runs until `setup.stop` is cancelled.
pub fn run(client: Client, setup: Setup) -> impl Future<Output = Result<(), Error>> + Send {
    let kind = ApiResource::erase::<k8s_openapi::api::core::v1::Namespace>(&());
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
    let resource = "namespaces";
    let mut watches = Watches::default();
    watches.add(
        resource,
        feed::watch(api, Config::default(), resource),
        |update| update,
    );
    let writer = setup.writer(client.clone());
    let controller = NamespaceController {
        deleter: Arc::new(ContentDeleter::new(client, writer)),
        terminating: BTreeMap::new(),
    };
    frame::run(controller, watches, setup)
}

impl Controller for NamespaceController {
    type Event = Update<DynamicObject>;
    type Outcome = Outcome;

    fn name(&self) -> &'static str {
        "namespace controller"
    }

    fn pace(&self) -> Pace {
        Pace::steady(AT_ONCE)
    }

    fn handle(&mut self, event: Self::Event, cx: &mut Context<Self>) {
        match event {
            Update::Applied(object) => {
                let meta = &object.metadata;
                let uid: Arc<str> = meta.uid.as_deref().unwrap_or_default().into();
                if meta.deletion_timestamp.is_some() && !self.terminating.contains_key(&uid) {
                    let name = meta.name.as_deref().unwrap_or_default().into();
                    self.terminating.insert(uid.clone(), (name, 0));
                    cx.after(SETTLE, Outcome::Due(uid));
                }
            }
            Update::Gone(id) => drop(self.terminating.remove(&id.uid)),
        }
    }

    fn completed(&mut self, outcome: Outcome, cx: &mut Context<Self>) {
        match outcome {
            Outcome::Due(uid) => {
                let Some((name, _)) = self.terminating.get(&uid) else {
                    return;
                };
                let (deleter, name) = (self.deleter.clone(), name.clone());
                cx.spawn(async move {
                    let progress = deleter.delete(&name, &uid).await;
                    Outcome::Tried(uid, progress)
                });
            }
            Outcome::Tried(_, Progress::Finalized) => {}
            Outcome::Tried(uid, Progress::Remaining) => {
                if let Some((_, tries)) = self.terminating.get_mut(&uid) {
                    let delay = backoff::delay(&RETRY, *tries);
                    *tries = tries.saturating_add(1);
                    cx.after(delay, Outcome::Due(uid));
                }
            }
        }
    }
}
