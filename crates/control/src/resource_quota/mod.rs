//! The resource quota controller: keeps the status of quotas. What they refuse is decided by admission, which does not
//! read it.
//!
//! It watches quotas, and the objects of a kind from the moment that a quota names it: a cluster without quotas pays for
//! one watch of nothing.

use std::time::Duration;

use k8s_openapi::api::core::v1::ResourceQuota;
use kennel_client::backoff::{Backoff, Policy};
use kennel_client::clock::Clock;
use kennel_client::{Error, api, feed};
use kennel_core::quota::{Kind, Measured, Status, Tracker};
use kennel_types::{Identity, Monotonic};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, PartialObjectMeta};
use kube::runtime::watcher::Config;
use serde_json::Value;

use crate::discovery::{self, Stored};
use crate::frame::status_writes::{Next, StatusWrite, StatusWrites};
use crate::frame::{self, Context, Controller, Setup, Update, Watches};

/// Before discovery is asked again after a failure.
const DISCOVERY_RETRY: Policy = Policy::exponential(Duration::from_secs(1), Duration::from_mins(1));

enum Event {
    Quota(Update<(Identity, Value)>),
    /// A change of an object of the kind with this number.
    Object(usize, Update<(Identity, Measured)>),
}

enum Outcome {
    Discovered(kube::Result<Vec<Stored>>),
    DiscoveryDue,
    Status(StatusWrite),
}

impl From<StatusWrite> for Outcome {
    fn from(outcome: StatusWrite) -> Self {
        Self::Status(outcome)
    }
}

struct Quotas {
    client: Client,
    writes: StatusWrites,
    tracker: Tracker,
    discovered: bool,
    /// The kinds of the API that no quota has named yet.
    unwatched: Vec<Stored>,
    discovery_retry: Backoff,
}

/// Runs until `setup.stop` is cancelled.
pub fn run(client: Client, setup: Setup) -> impl Future<Output = Result<(), Error>> + Send {
    let kind = ApiResource::erase::<ResourceQuota>(&());
    let quotas: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
    let resource = "resourcequotas";
    let mut watches = Watches::default();
    watches.add(
        resource,
        feed::watch(quotas, Config::default(), resource),
        |update| Event::Quota(update.map(|quota| (Identity::of(&quota.metadata), tree(&quota)))),
    );
    let controller = Quotas {
        writes: StatusWrites::new("quota", setup.writer(client.clone())),
        client,
        tracker: Tracker::default(),
        discovered: false,
        unwatched: Vec::new(),
        discovery_retry: Backoff::new(DISCOVERY_RETRY),
    };
    frame::run(controller, watches, setup)
}

/// The object as the API has it.
fn tree(object: &DynamicObject) -> Value {
    let tree = serde_json::to_value(object);
    tree.expect("an object of the API is JSON")
}

impl Quotas {
    fn discover(&self, cx: &mut Context<Self>) {
        let client = self.client.clone();
        cx.spawn(async move { Outcome::Discovered(discovery::stored(&client).await) });
    }

    /// Watches the kinds that quotas name now. Nothing is reconciled until they are listed.
    fn watch_limited(&mut self, cx: &mut Context<Self>) {
        let tracker = &self.tracker;
        let (limited, rest) = self
            .unwatched
            .drain(..)
            .partition(|stored| tracker.is_limited(kind(&stored.resource)));
        self.unwatched = rest;
        let limited: Vec<Stored> = limited;
        for Stored { resource, .. } in limited {
            let number = self.tracker.add_kind(&resource.group, &resource.plural);
            let name: &'static str = resource.plural.clone().leak();
            if kind(&resource).is_measured() {
                let objects: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
                let changes = feed::watch(objects, Config::default(), name);
                cx.watch(name, changes, move |update| {
                    let measure = |object: DynamicObject| {
                        let measured = Measured::of(kind(&resource), &tree(&object));
                        (Identity::of(&object.metadata), measured)
                    };
                    Event::Object(number, update.map(measure))
                });
            } else {
                let objects: Api<PartialObjectMeta<DynamicObject>> =
                    Api::all_with(self.client.clone(), &resource);
                let changes = feed::watch(objects, Config::default(), name);
                cx.watch(name, changes, move |update| {
                    let counted = Measured::counted(kind(&resource));
                    Event::Object(
                        number,
                        update.map(|object| (Identity::of(&object.metadata), counted)),
                    )
                });
            }
        }
    }

    fn write(&self, Status { id, object }: Status, cx: &mut Context<Self>) {
        let path = api::core_path(&id.namespace, "resourcequotas");
        let path = format!("{path}/{}/status", id.name);
        self.writes.start(id, path, &object, cx);
    }
}

fn kind(resource: &ApiResource) -> Kind<'_> {
    Kind::of(&resource.group, &resource.plural)
}

impl Controller for Quotas {
    type Event = Event;
    type Outcome = Outcome;

    fn name(&self) -> &'static str {
        "resource quota controller"
    }

    fn start(&mut self, cx: &mut Context<Self>) {
        self.discover(cx);
    }

    fn handle(&mut self, event: Event, _: &mut Context<Self>) {
        match event {
            Event::Quota(Update::Applied((id, object))) => self.tracker.quota(id, object),
            Event::Quota(Update::Gone(id)) => {
                self.tracker.quota_gone(&id.uid);
                self.writes.forget(&id.uid);
            }
            Event::Object(kind, Update::Applied((id, measured))) => {
                self.tracker.object(kind, &id, measured);
            }
            Event::Object(kind, Update::Gone(id)) => self.tracker.object_gone(kind, &id),
        }
    }

    fn reconcile(&mut self, cx: &mut Context<Self>) {
        self.watch_limited(cx);
        if !self.discovered || !cx.is_synced() {
            return;
        }
        for status in self.tracker.take(cx.timestamp()) {
            self.write(status, cx);
        }
    }

    fn completed(&mut self, outcome: Outcome, cx: &mut Context<Self>) {
        match outcome {
            Outcome::Discovered(Ok(discovered)) => {
                let able = |stored: &Stored| stored.watchable && stored.namespaced;
                self.unwatched = discovered.into_iter().filter(able).collect();
                self.discovered = true;
            }
            Outcome::Discovered(Err(error)) => {
                tracing::warn!("the quota controller cannot discover the API's resources: {error}");
                cx.after(self.discovery_retry.next_delay(), Outcome::DiscoveryDue);
            }
            Outcome::DiscoveryDue => self.discover(cx),
            Outcome::Status(outcome) => match self.writes.completed(outcome, cx) {
                Some(Next::Rest(uid)) => self.tracker.written(&uid),
                Some(Next::Repeat(uid)) => self.tracker.failed(&uid),
                None => {}
            },
        }
    }

    fn next_deadline(&self, clock: &Clock) -> Option<Monotonic> {
        self.tracker.next_deadline().map(|at| clock.when(at))
    }
}
