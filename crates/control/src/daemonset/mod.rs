//! The DaemonSet controller: carries out what [`kennel_core::daemonset`] plans.
//!
//! One loop owns the planner; nothing else touches it. What the planner does not do yet (history,
//! rolling updates, adoption) is said there; this shell does not write events on DaemonSets yet,
//! and does not elect a leader: run one of it.

mod act;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, BoxStream, StreamExt};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node, Pod};
use kennel_core::daemonset::{Action, Counters, Event, Planner};
use kube::api::{Api, ApiResource, DynamicObject};
use kube::runtime::watcher::Config;
use kube::{Client, Resource};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::run::feed::{self, Change};
use crate::run::work::{WRITES_AT_ONCE, Work};
use crate::run::{Error, clock};
use crate::view;

/// The least time between two status writes of one DaemonSet, so that a wave of pods becoming
/// ready costs a few writes and not thousands.
const STATUS_PAUSE: Duration = Duration::from_millis(50);
/// How long to wait after a status could not be written.
const STATUS_RETRY: Duration = Duration::from_millis(500);

/// What the watches see.
enum Seen {
    DaemonSet(Change<DynamicObject>),
    Node(Change<Node>),
    Pod(Change<Pod>),
}

/// How a piece of work ended.
enum Outcome {
    Created {
        daemon_set: Arc<str>,
        node: Arc<str>,
        done: bool,
    },
    Deleted {
        pod: Arc<str>,
        done: bool,
    },
    /// The pause before a status write is over.
    StatusDue(Arc<str>),
    StatusWritten {
        daemon_set: Arc<str>,
        /// What was written, or nothing if it failed.
        counters: Option<Counters>,
    },
    StatusRetry(Arc<str>),
}

struct Controller {
    client: Client,
    planner: Planner,
    work: Work<Outcome>,
    /// When each DaemonSet's status was last written, by uid.
    status_written: BTreeMap<Arc<str>, Instant>,
    /// Watches that have not delivered everything yet.
    unsynced: Unsynced,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Unsynced {
    daemon_sets: bool,
    nodes: bool,
    pods: bool,
}

impl Unsynced {
    const ALL: Self = Self {
        daemon_sets: true,
        nodes: true,
        pods: true,
    };
    const NONE: Self = Self {
        daemon_sets: false,
        nodes: false,
        pods: false,
    };
}

/// Runs until told to stop.
pub async fn run(client: Client, stop: CancellationToken) -> Result<(), Error> {
    let mut seen = watches(&client);
    let mut controller = Controller {
        client,
        planner: Planner::new(),
        work: Work::new(WRITES_AT_ONCE),
        status_written: BTreeMap::new(),
        unsynced: Unsynced::ALL,
    };
    tracing::info!("daemonset controller started");
    loop {
        let wake = controller.planner.next_wake();
        tokio::select! {
            () = stop.cancelled() => break,
            change = seen.next() => match change {
                Some(change) => controller.saw(change),
                None => return Err(Error::WatchEnded("daemonsets, nodes and pods")),
            },
            outcome = controller.work.next() => controller.ended(outcome),
            () = clock::sleep_until(wake) => controller.tell(Event::Time),
        }
    }
    controller.work.finish().await;
    tracing::info!("daemonset controller stopped");
    Ok(())
}

fn watches(client: &Client) -> BoxStream<'static, Seen> {
    let kind = ApiResource::erase::<DaemonSet>(&());
    let sets: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
    let sets = feed::watch(sets, Config::default(), "daemonsets").map(Seen::DaemonSet);
    let nodes = watch_all::<Node>(client, "nodes").map(Seen::Node);
    let pods = watch_all::<Pod>(client, "pods").map(Seen::Pod);
    stream::select_all([sets.boxed(), nodes.boxed(), pods.boxed()]).boxed()
}

fn watch_all<K>(client: &Client, what: &'static str) -> BoxStream<'static, Change<K>>
where
    K: Resource<DynamicType = ()>
        + Clone
        + serde::de::DeserializeOwned
        + std::fmt::Debug
        + Send
        + 'static,
{
    feed::watch(Api::all(client.clone()), Config::default(), what)
}

impl Controller {
    fn saw(&mut self, seen: Seen) {
        match seen {
            Seen::DaemonSet(Change::Applied(object)) => match view::daemon_set(&object) {
                Ok(view) => self.tell(Event::DaemonSet(view)),
                Err(error) => {
                    let name = object.metadata.name.unwrap_or_default();
                    tracing::warn!(name, %error, "a daemonset's selector makes no sense");
                }
            },
            Seen::DaemonSet(Change::Gone(id)) => {
                self.status_written.remove(&id.uid);
                self.tell(Event::DaemonSetGone(id.uid));
            }
            Seen::Node(Change::Applied(node)) => self.tell(Event::Node(view::node(&node))),
            Seen::Node(Change::Gone(id)) => self.tell(Event::NodeGone(id.name)),
            Seen::Pod(Change::Applied(pod)) => self.tell(Event::Pod(view::pod(&pod))),
            Seen::Pod(Change::Gone(id)) => self.tell(Event::PodGone(id.uid)),
            Seen::DaemonSet(Change::Synced) => self.synced(|left| left.daemon_sets = false),
            Seen::Node(Change::Synced) => self.synced(|left| left.nodes = false),
            Seen::Pod(Change::Synced) => self.synced(|left| left.pods = false),
        }
    }

    /// Lets the planner act once all watches have delivered what there was.
    fn synced(&mut self, mark: impl FnOnce(&mut Unsynced)) {
        if self.unsynced == Unsynced::NONE {
            return;
        }
        mark(&mut self.unsynced);
        if self.unsynced == Unsynced::NONE {
            self.tell(Event::Synced);
        }
    }

    fn ended(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Created { done: true, .. } | Outcome::Deleted { done: true, .. } => {}
            Outcome::Created {
                daemon_set, node, ..
            } => {
                self.tell(Event::CreateFailed { daemon_set, node });
            }
            Outcome::Deleted { pod, .. } => self.tell(Event::DeleteFailed(pod)),
            Outcome::StatusDue(daemon_set) => self.write_status(&daemon_set),
            Outcome::StatusWritten {
                daemon_set,
                counters: Some(counters),
            } => {
                self.tell(Event::StatusWritten {
                    daemon_set,
                    counters,
                });
            }
            Outcome::StatusWritten {
                daemon_set,
                counters: None,
            } => {
                self.work
                    .later(STATUS_RETRY, Outcome::StatusRetry(daemon_set));
            }
            Outcome::StatusRetry(daemon_set) => self.tell(Event::StatusFailed(daemon_set)),
        }
    }

    fn tell(&mut self, event: Event) {
        for action in self.planner.handle(clock::now_ms(), event) {
            self.act(action);
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::CreatePod { daemon_set, node } => self.create_pod(daemon_set, node),
            Action::DeletePod {
                namespace,
                name,
                uid,
                ..
            } => {
                let client = self.client.clone();
                self.work.push(async move {
                    let done = act::delete_pod(&client, &namespace, &name, &uid).await;
                    Outcome::Deleted { pod: uid, done }
                });
            }
            Action::WriteStatus { daemon_set } => {
                let last = self.status_written.get(&daemon_set);
                let pause =
                    last.map_or(STATUS_PAUSE, |at| STATUS_PAUSE.saturating_sub(at.elapsed()));
                self.work.later(pause, Outcome::StatusDue(daemon_set));
            }
        }
    }

    fn create_pod(&mut self, daemon_set: Arc<str>, node: Arc<str>) {
        let Some(body) = self.planner.pod_for(&daemon_set, &node) else {
            return;
        };
        let client = self.client.clone();
        self.work.push(async move {
            let done = act::create_pod(&client, &body, &node).await;
            Outcome::Created {
                daemon_set,
                node,
                done,
            }
        });
    }

    fn write_status(&mut self, daemon_set: &Arc<str>) {
        let view = self.planner.view(daemon_set);
        let Some((view, counters)) = view.zip(self.planner.counters(daemon_set)) else {
            return;
        };
        let (namespace, name) = (view.namespace.clone(), view.name.clone());
        let (client, daemon_set) = (self.client.clone(), daemon_set.clone());
        self.status_written
            .insert(daemon_set.clone(), Instant::now());
        self.work.push(async move {
            let written = act::write_status(&client, &namespace, &name, &daemon_set, counters);
            let counters = written.await.then_some(counters);
            Outcome::StatusWritten {
                daemon_set,
                counters,
            }
        });
    }
}
