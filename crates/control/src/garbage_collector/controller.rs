//! The controller: changes of objects in, deletions out.

use std::sync::Arc;
use std::time::Duration;

use kennel_client::backoff::{self, Backoff, Policy};
use kennel_client::events::{Note, Recorder, Reference};
use kennel_client::work::WRITES_AT_ONCE;
use kennel_client::write::Writer;
use kennel_core::garbage::graph::{Action, Found, Lookup, Outcome as StepOutcome, Step};
use kennel_core::garbage::{Graph, Item, KindId, OwnerRef};
use kennel_types::Identity;
use kube::Client;
use kube::api::{ApiResource, GroupVersionKind};

use super::{watches, writes};
use crate::discovery::{self, Stored};
use crate::frame::{Context, Controller, Update, Watches};
use crate::informers::Informers;

/// Before an object whose write failed is tried again.
const RETRY: Policy = Policy::exponential(Duration::from_millis(50), Duration::from_millis(51_200));
/// Before an owner that is not in the graph is looked up again.
const LOOKUP_RETRY: Policy = Policy::exponential(Duration::from_secs(10), Duration::from_secs(10));
/// Before discovery is asked again after a failure.
const DISCOVERY_RETRY: Policy =
    Policy::exponential(Duration::from_secs(1), Duration::from_secs(30));
/// Events have no owners and own nothing, and there are many of them.
const IGNORED: &str = "Event";

pub(super) enum Outcome {
    Discovered(kube::Result<Vec<Stored>>),
    DiscoveryDue,
    LookedUp(Lookup, Found),
    LookupDue(Lookup),
    Performed(Arc<str>, StepOutcome),
    RetryDue(Arc<str>),
}

/// A kind of the API, by its [`KindId`].
struct Kind {
    stored: Arc<Stored>,
    /// API version and kind, for events. Leaked: kinds are discovered once and kept for the life of the process.
    names: (&'static str, &'static str),
}

pub(super) struct GarbageCollector {
    client: Client,
    writer: Writer,
    recorder: Recorder,
    graph: Graph,
    kinds: Vec<Kind>,
    discovered: bool,
    discovery: Backoff,
}

impl GarbageCollector {
    /// The controller, and the watches of the kinds that it shares with others.
    pub(super) fn new(
        client: Client,
        writer: Writer,
        recorder: Recorder,
        informers: &mut Informers,
    ) -> (Self, Watches<Update<Item>>) {
        let mut controller = Self {
            client,
            writer,
            recorder,
            graph: Graph::default(),
            kinds: Vec::new(),
            discovered: false,
            discovery: Backoff::new(DISCOVERY_RETRY),
        };
        let shared = watches::SHARED.map(|(version, kind, namespaced)| {
            let (group, version) = version.rsplit_once('/').unwrap_or(("", version));
            let gvk = GroupVersionKind::gvk(group, version, kind);
            controller.add_kind(Stored {
                resource: ApiResource::from_gvk(&gvk),
                namespaced,
                watchable: true,
                collective: true,
            })
        });
        (controller, watches::shared(informers, shared))
    }

    fn add_kind(&mut self, stored: Stored) -> KindId {
        let ApiResource {
            api_version, kind, ..
        } = stored.resource.clone();
        let id = self.graph.add_kind(&api_version, &kind, stored.namespaced);
        self.kinds.push(Kind {
            stored: Arc::new(stored),
            names: (api_version.leak(), kind.leak()),
        });
        id
    }

    fn discover(&self, cx: &mut Context<Self>) {
        let client = self.client.clone();
        cx.spawn(async move { Outcome::Discovered(discovery::stored(&client).await) });
    }

    /// Watches the kinds that no other controller watches.
    fn watch_discovered(&mut self, discovered: Vec<Stored>, cx: &mut Context<Self>) {
        for stored in discovered {
            let relevant = stored.watchable && stored.resource.kind != IGNORED;
            if relevant && !watches::is_shared(&stored) {
                let id = self.add_kind(stored.clone());
                let name = self.kinds[id.place()].names.1;
                let changes = watches::metadata(&self.client, &stored, name);
                cx.watch(name, changes, move |update| {
                    update.map(|object| watches::item(id, &object.metadata))
                });
            }
        }
        self.discovered = true;
        if cx.is_synced() {
            self.graph.synced();
        }
    }

    fn look_up(&self, lookup: Lookup, cx: &mut Context<Self>) {
        let stored = self.kinds[lookup.kind.place()].stored.clone();
        let writer = self.writer.clone();
        cx.spawn(async move {
            let found = writes::look_up(&writer, &stored, &lookup).await;
            Outcome::LookedUp(lookup, found)
        });
    }

    fn perform(&self, item: Item, step: Step, cx: &mut Context<Self>) {
        let stored = self.kinds[item.kind.place()].stored.clone();
        let writer = self.writer.clone();
        cx.spawn(async move {
            let outcome = writes::perform(&writer, &stored, &item, &step).await;
            Outcome::Performed(item.uid, outcome)
        });
    }

    fn record(&self, item: &Item, owner: &OwnerRef) {
        let (api_version, kind) = self.kinds[item.kind.place()].names;
        let id = Identity {
            namespace: item.namespace.clone(),
            name: item.name.clone(),
            uid: item.uid.clone(),
        };
        let about = Reference {
            resource_version: item.version.to_string(),
            ..Reference::new(api_version, kind, &id)
        };
        let message = format!(
            "ownerRef [{}/{}, namespace: {ns}, name: {}, uid: {}] does not exist in namespace {ns:?}",
            owner.api_version,
            owner.kind,
            owner.name,
            owner.uid,
            ns = item.namespace,
        );
        let note = Note::new(true, "OwnerRefInvalidNamespace", message);
        self.recorder.emit(about, note);
    }
}

impl Controller for GarbageCollector {
    type Event = Update<Item>;
    type Outcome = Outcome;

    fn name(&self) -> &'static str {
        "garbage collector"
    }

    fn start(&mut self, cx: &mut Context<Self>) {
        self.discover(cx);
    }

    fn handle(&mut self, event: Update<Item>, _: &mut Context<Self>) {
        match event {
            Update::Applied(item) => self.graph.observe(item),
            Update::Gone(id) => self.graph.gone(&id.uid),
        }
    }

    /// The graph starts when every discovered kind is listed, not only the shared ones.
    fn synced(&mut self, _: &mut Context<Self>) {
        if self.discovered {
            self.graph.synced();
        }
    }

    /// Takes only as many actions as can run: the graph keeps the rest, and may change its mind.
    fn reconcile(&mut self, cx: &mut Context<Self>) {
        for action in self
            .graph
            .take(WRITES_AT_ONCE.saturating_sub(cx.in_flight()))
        {
            match action {
                Action::Verify(lookup) => self.look_up(lookup, cx),
                Action::Act(item, step) => self.perform(item, step, cx),
                Action::Report(item, owner) => self.record(&item, &owner),
            }
        }
    }

    fn completed(&mut self, outcome: Outcome, cx: &mut Context<Self>) {
        match outcome {
            Outcome::Discovered(Ok(discovered)) => self.watch_discovered(discovered, cx),
            Outcome::Discovered(Err(error)) => {
                tracing::warn!(
                    "the garbage collector cannot discover the API's resources: {error}"
                );
                cx.after(self.discovery.next_delay(), Outcome::DiscoveryDue);
            }
            Outcome::DiscoveryDue => self.discover(cx),
            Outcome::LookedUp(lookup, found) => {
                self.graph.found(&lookup, found);
                if found != Found::Absent {
                    cx.after(backoff::delay(&LOOKUP_RETRY, 0), Outcome::LookupDue(lookup));
                }
            }
            Outcome::LookupDue(lookup) => self.graph.reconsider(&lookup),
            Outcome::Performed(uid, outcome) => {
                if let Some(failures) = self.graph.finished(&uid, outcome) {
                    let delay = backoff::delay(&RETRY, failures.saturating_sub(1));
                    cx.after(delay, Outcome::RetryDue(uid));
                }
            }
            Outcome::RetryDue(uid) => self.graph.retry(&uid),
        }
    }
}
