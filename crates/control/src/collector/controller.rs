//! The loop: changes in, deletions out.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{SelectAll, StreamExt as _};
use kennel_client::Error;
use kennel_client::events::{Note, Recorder, Reference};
use kennel_client::feed::Change;
use kennel_client::work::{WRITES_AT_ONCE, Work};
use kennel_client::write::Writer;
use kennel_core::garbage::graph::{Action, Found, Lookup, Outcome, Step};
use kennel_core::garbage::{Graph, Item, KindId, OwnerRef};
use kube::Client;
use kube::api::{ApiResource, GroupVersionKind};
use tokio_util::sync::CancellationToken;

use super::{act, seen};
use crate::discover::{self, Stored};
use crate::informers::Informers;

/// How long to wait after the first failure with an object; doubled each time.
const RETRY: Duration = Duration::from_millis(50);
/// The wait is doubled at most so often: to 51 s.
const RETRY_DOUBLINGS: u32 = 10;
/// How long to wait before an owner is looked for again.
const LOOK_AGAIN: Duration = Duration::from_secs(10);
/// How long to wait before discovery is asked again.
const DISCOVER_AGAIN: Duration = Duration::from_secs(1);
/// Events have no owners and own nothing, and there are many of them.
const IGNORED: &str = "Event";

enum Ended {
    Discovered(kube::Result<Vec<Stored>>),
    Discover,
    Found(Lookup, Found),
    LookAgain(Lookup),
    Acted(Arc<str>, Outcome),
    Retry(Arc<str>),
}

/// A kind, by its place.
struct Kind {
    stored: Arc<Stored>,
    /// Group, version and kind for events, which live as long as the process, and so do kinds.
    names: (&'static str, &'static str),
}

pub(super) struct Controller {
    client: Client,
    writer: Writer,
    recorder: Recorder,
    graph: Graph,
    kinds: Vec<Kind>,
    watches: SelectAll<seen::Watch>,
    /// Kinds of which not everything has been seen yet.
    unsynced: BTreeSet<KindId>,
    discovered: bool,
    work: Work<Ended>,
}

impl Controller {
    pub(super) fn new(
        client: Client,
        writer: Writer,
        recorder: Recorder,
        informers: &mut Informers,
    ) -> Self {
        let mut controller = Self {
            client,
            writer,
            recorder,
            graph: Graph::new(),
            kinds: Vec::new(),
            watches: SelectAll::new(),
            unsynced: BTreeSet::new(),
            discovered: false,
            work: Work::new(WRITES_AT_ONCE),
        };
        let shared = seen::SHARED.map(|(version, kind, namespaced)| {
            let (group, version) = version.rsplit_once('/').unwrap_or(("", version));
            let gvk = GroupVersionKind::gvk(group, version, kind);
            controller.learn(Stored {
                resource: ApiResource::from_gvk(&gvk),
                namespaced,
                watched: true,
                collective: true,
            })
        });
        controller.watches.extend(seen::shared(informers, shared));
        controller
    }

    /// One more kind.
    fn learn(&mut self, stored: Stored) -> KindId {
        let ApiResource {
            api_version, kind, ..
        } = stored.resource.clone();
        let id = self.graph.learn(&api_version, &kind, stored.namespaced);
        self.unsynced.insert(id);
        self.kinds.push(Kind {
            stored: Arc::new(stored),
            names: (api_version.leak(), kind.leak()),
        });
        id
    }

    pub(super) async fn run(mut self, stop: CancellationToken) -> Result<(), Error> {
        self.discover();
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                seen = self.watches.next() => match seen {
                    Some((kind, change)) => self.saw(kind, change),
                    None if stop.is_cancelled() => break,
                    None => return Err(Error::WatchEnded("all objects")),
                },
                ended = self.work.next() => self.ended(ended),
            }
            self.act();
        }
        self.work.finish().await;
        Ok(())
    }

    fn discover(&mut self) {
        let client = self.client.clone();
        self.work
            .push(async move { Ended::Discovered(discover::stored(&client).await) });
    }

    fn saw(&mut self, kind: KindId, change: Change<Item>) {
        match change {
            Change::Applied(item) => self.graph.observe(item),
            Change::Gone(id) => self.graph.gone(&id.uid),
            Change::Synced => {
                self.unsynced.remove(&kind);
                self.begin_if_all_is_seen();
            }
        }
    }

    fn begin_if_all_is_seen(&mut self) {
        if self.discovered && self.unsynced.is_empty() {
            self.graph.synced();
        }
    }

    fn ended(&mut self, ended: Ended) {
        match ended {
            Ended::Discovered(Ok(stored)) => self.watch_all(stored),
            Ended::Discovered(Err(error)) => {
                tracing::warn!("the garbage collector cannot see what there is: {error}");
                self.work.later(DISCOVER_AGAIN, Ended::Discover);
            }
            Ended::Discover => self.discover(),
            Ended::Found(lookup, found) => {
                self.graph.found(&lookup, found);
                if found != Found::Absent {
                    self.work.later(LOOK_AGAIN, Ended::LookAgain(lookup));
                }
            }
            Ended::LookAgain(lookup) => self.graph.reconsider(&lookup),
            Ended::Acted(uid, outcome) => {
                if let Some(failures) = self.graph.ended(&uid, outcome) {
                    let delay = RETRY * 2_u32.pow((failures - 1).min(RETRY_DOUBLINGS));
                    self.work.later(delay, Ended::Retry(uid));
                }
            }
            Ended::Retry(uid) => self.graph.retry(&uid),
        }
    }

    /// Watches the kinds that nobody else watches.
    fn watch_all(&mut self, stored: Vec<Stored>) {
        for stored in stored {
            let ours = stored.watched && stored.resource.kind != IGNORED;
            if ours && !seen::is_shared(&stored) {
                let id = self.learn(stored.clone());
                let what = self.kinds[id.place()].names.1;
                let watch = seen::watch(&self.client, &stored, id, what);
                self.watches.push(watch);
            }
        }
        self.discovered = true;
        self.begin_if_all_is_seen();
    }

    /// Carries out what the graph asks for, as far as there is room.
    fn act(&mut self) {
        let under_way = self.work.running() + self.work.queued();
        for action in self.graph.take(WRITES_AT_ONCE.saturating_sub(under_way)) {
            match action {
                Action::Verify(lookup) => self.verify(lookup),
                Action::Act(item, step) => self.perform(item, step),
                Action::Report(item, owner) => self.report(&item, &owner),
            }
        }
    }

    fn verify(&mut self, lookup: Lookup) {
        let stored = self.kinds[lookup.kind.place()].stored.clone();
        let writer = self.writer.clone();
        self.work.push(async move {
            let found = act::verify(&writer, &stored, &lookup).await;
            Ended::Found(lookup, found)
        });
    }

    fn perform(&mut self, item: Item, step: Step) {
        let stored = self.kinds[item.kind.place()].stored.clone();
        let writer = self.writer.clone();
        self.work.push(async move {
            let outcome = act::perform(&writer, &stored, &item, &step).await;
            Ended::Acted(item.uid, outcome)
        });
    }

    fn report(&self, item: &Item, owner: &OwnerRef) {
        let (api_version, kind) = self.kinds[item.kind.place()].names;
        let about = Reference {
            api_version,
            kind,
            namespace: item.namespace.clone(),
            name: item.name.clone(),
            uid: item.uid.clone(),
            resource_version: item.version.to_string(),
            field_path: String::new(),
        };
        let note = Note {
            warning: true,
            reason: "OwnerRefInvalidNamespace".into(),
            message: format!(
                "ownerRef [{}/{}, namespace: {ns}, name: {}, uid: {}] does not exist in namespace {ns:?}",
                owner.api_version,
                owner.kind,
                owner.name,
                owner.uid,
                ns = item.namespace,
            ),
        };
        self.recorder.emit(about, note);
    }
}
