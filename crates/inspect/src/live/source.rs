//! The watches.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::stream::{self, BoxStream, StreamExt as _};
use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet};
use k8s_openapi::api::core::v1;
use kennel_client::feed::{self, Change, Links};
use kennel_control::view;
use kennel_core::daemonset::view::Phase;
use kennel_core::daemonset::{DaemonSetView, NodeView, PodView};
use kennel_core::rollout::history::DatedRevision;
use kennel_core::why::{PodSnapshot, shown_failure};
use kennel_types::event::{Event, EventMetadata};
use kennel_types::{Identity, Namespace, Node, Pod, Timestamp, Waiting};
use kube::api::{Api, ApiResource, DynamicObject};
use kube::runtime::watcher::Config;
use kube::{Client, Resource};
use serde_json::Value;

use super::Scope;
use crate::history::dated;
use crate::snapshot::pod_snapshot;

/// Objects of a page of a list. Few, because a page is in memory as a whole while it is read.
const PAGE_SIZE: u32 = 50;
/// Characters that are kept of an event's message.
const MESSAGE_MAX: usize = 1024;

pub(super) type Annotations = Arc<BTreeMap<String, String>>;

/// What the watches deliver.
pub(super) enum Input {
    Set(Change<DaemonSetView>),
    Node(Change<NodeView>),
    /// `None`: a pod of another kind of controller.
    Pod(Change<Option<SeenPod>>),
    Revision(Change<Option<DatedRevision>>),
    /// The name and the annotations.
    Namespace(Change<(Arc<str>, Annotations)>),
    /// The uid and the event.
    Event(Change<(Arc<str>, Event)>),
    /// Something that cannot be decoded.
    Undecodable,
}

/// A pod with its failure: it may be deleted before anybody asks.
pub(super) struct SeenPod {
    pub(super) view: PodView,
    pub(super) shows: Shows,
}

/// The failure of a pod, from its status.
pub(super) enum Shows {
    /// Nothing that can be one.
    Nothing,
    /// What can be one, and what the containers say of it.
    Failure(Option<Arc<str>>),
}

impl SeenPod {
    fn new(PodSnapshot { view, object }: PodSnapshot) -> Self {
        let health = view.health;
        let may_fail =
            view.phase == Phase::Failed || health.restarts > 0 || health.waiting != Waiting::No;
        if !may_fail {
            let shows = Shows::Nothing;
            return Self { view, shows };
        }
        let pod = PodSnapshot { view, object };
        Self {
            shows: Shows::Failure(shown_failure(&pod).map(Into::into)),
            view: pod.view,
        }
    }
}

pub(super) type Inputs = BoxStream<'static, Input>;

/// The watches of a scope. `selector` is that of the one DaemonSet.
pub(super) fn watch(
    client: &Client,
    scope: &Scope,
    selector: Option<&str>,
    links: &Links,
) -> Inputs {
    let watches = Watches {
        client,
        scope,
        selector,
        links,
    };
    stream::select_all([
        watches.sets(),
        watches.nodes(),
        watches.pods(),
        watches.revisions(),
        watches.namespaces(),
        watches.events(),
    ])
    .boxed()
}

/// The selector of the one DaemonSet, if it is another than the watched one.
pub(super) fn other_selector(
    set: &Change<DaemonSetView>,
    selector: Option<&str>,
) -> Option<String> {
    let Change::Applied(set) = set else {
        return None;
    };
    let found = set.selector.to_string();
    selector
        .is_some_and(|selector| selector != found)
        .then_some(found)
}

struct Watches<'a> {
    client: &'a Client,
    scope: &'a Scope,
    selector: Option<&'a str>,
    links: &'a Links,
}

impl Watches<'_> {
    fn sets(&self) -> Inputs {
        let config = match self.scope {
            Scope::All => paged(),
            Scope::One { name, .. } => named(name),
        };
        self.objects::<DaemonSet>(config, "daemonsets", None)
            .map(|change| match change {
                Change::Applied(object) => match view::daemon_set(&object) {
                    Ok(set) => Input::Set(Change::Applied(set)),
                    Err(_) => Input::Undecodable,
                },
                Change::Gone(id) => Input::Set(Change::Gone(id)),
                Change::Synced => Input::Set(Change::Synced),
            })
            .boxed()
    }

    fn nodes(&self) -> Inputs {
        let api: Api<Node> = Api::all(self.client.clone());
        feed::watch_linked(api, paged(), "nodes", None, self.links.clone())
            .map(|change| Input::Node(change.map(|node| view::node(&node))))
            .boxed()
    }

    fn pods(&self) -> Inputs {
        let (client, config) = (self.client.clone(), self.selected());
        let api: Api<Pod> = match self.scope {
            Scope::All => Api::all(client),
            Scope::One { namespace, .. } => Api::namespaced(client, namespace),
        };
        feed::watch_linked(api, config, "pods", None, self.links.clone())
            .map(|change| Input::Pod(change.map(|pod| pod_snapshot(pod).map(SeenPod::new))))
            .boxed()
    }

    fn revisions(&self) -> Inputs {
        let without = "stages and verdicts of rollouts are not shown";
        self.objects::<ControllerRevision>(self.selected(), "controllerrevisions", Some(without))
            .map(|change| Input::Revision(change.map(|object| dated(&object))))
            .boxed()
    }

    fn namespaces(&self) -> Inputs {
        let config = match self.scope {
            Scope::All => paged(),
            Scope::One { namespace, .. } => named(namespace),
        };
        let api: Api<Namespace> = Api::all(self.client.clone());
        let without = "defaults of rollout policies are not known";
        feed::watch_linked(api, config, "namespaces", Some(without), self.links.clone())
            .map(|change| {
                Input::Namespace(change.map(|namespace| {
                    let name = namespace.metadata.name.as_deref().unwrap_or_default();
                    let annotations = namespace.metadata.annotations.clone();
                    (name.into(), Arc::new(annotations.unwrap_or_default()))
                }))
            })
            .boxed()
    }

    fn events(&self) -> Inputs {
        let mut about = "involvedObject.kind=DaemonSet".to_owned();
        if let Scope::One { name, .. } = self.scope {
            about = format!("{about},involvedObject.name={name}");
        }
        let config = paged().fields(&about);
        self.objects::<v1::Event>(config, "events", Some("events are not shown"))
            .map(|change| match change {
                Change::Applied(object) => match event(object) {
                    Some(event) => Input::Event(Change::Applied(event)),
                    None => Input::Undecodable,
                },
                Change::Gone(id) => Input::Event(Change::Gone(id)),
                Change::Synced => Input::Event(Change::Synced),
            })
            .boxed()
    }

    /// Undecoded objects.
    fn objects<K: Resource<DynamicType = ()>>(
        &self,
        config: Config,
        what: &'static str,
        consequence: Option<&'static str>,
    ) -> BoxStream<'static, Change<DynamicObject>> {
        let (client, kind) = (self.client.clone(), ApiResource::erase::<K>(&()));
        let api = match self.scope {
            Scope::All => Api::all_with(client, &kind),
            Scope::One { namespace, .. } => Api::namespaced_with(client, namespace, &kind),
        };
        feed::watch_linked(api, config, what, consequence, self.links.clone())
    }

    fn selected(&self) -> Config {
        match self.selector {
            Some(selector) => paged().labels(selector),
            None => paged(),
        }
    }
}

fn paged() -> Config {
    Config::default().page_size(PAGE_SIZE)
}

fn named(name: &str) -> Config {
    paged().fields(&format!("metadata.name={name}"))
}

fn event(object: DynamicObject) -> Option<(Arc<str>, Event)> {
    let uid: Arc<str> = Identity::of(&object.metadata).uid;
    let created = object.metadata.creation_timestamp.as_ref();
    let metadata = EventMetadata {
        creation_timestamp: created.map(Timestamp::from),
    };
    let mut event: Event = decode(object.data)?;
    event.metadata = metadata;
    if let Some((end, _)) = event.message.char_indices().nth(MESSAGE_MAX) {
        event.message.truncate(end);
        event.message.push('…');
    }
    Some((uid, event))
}

fn decode(data: Value) -> Option<Event> {
    serde_json::from_value(data).ok()
}
