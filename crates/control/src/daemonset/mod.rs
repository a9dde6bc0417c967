//! The DaemonSet controller: carries out what [`kennel_core::daemonset`] plans.
//!
//! One loop owns the planner; nothing else touches it. What the planner does not do yet (history,
//! rolling updates, adoption) is said there; this shell does not write events on DaemonSets yet,
//! and does not elect a leader: run one of it.

mod act;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, BoxStream, StreamExt};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node, Pod};
use kennel_core::daemonset::Counters;
use kennel_core::daemonset::plan::{Action, Event, Planner};
use kube::api::{Api, ApiResource, DynamicObject};
use kube::runtime::watcher::Config;
use kube::{Client, Resource};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::view;
use kennel_client::feed::{self, Change};
use kennel_client::work::{WRITES_AT_ONCE, Work};
use kennel_client::{Error, clock};

/// The least time between two status writes of one DaemonSet, so that a wave of pods becoming
/// ready costs a few writes and not thousands.
const STATUS_PAUSE: Duration = Duration::from_millis(50);
/// How long to wait after a status could not be written.
const STATUS_RETRY: Duration = Duration::from_millis(500);

/// What the watches see.
enum Seen {
    Event(Event),
    /// A watch has delivered all there was.
    Synced(Watch),
    /// Something that cannot be used.
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Watch {
    DaemonSets,
    Nodes,
    Pods,
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
    unsynced: BTreeSet<Watch>,
}

/// Runs until told to stop.
pub async fn run(client: Client, stop: CancellationToken) -> Result<(), Error> {
    let mut seen = watches(&client);
    let mut controller = Controller {
        client,
        planner: Planner::new(),
        work: Work::new(WRITES_AT_ONCE),
        status_written: BTreeMap::new(),
        unsynced: BTreeSet::from([Watch::DaemonSets, Watch::Nodes, Watch::Pods]),
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
    let sets = feed::watch(sets, Config::default(), "daemonsets").map(saw_daemon_set);
    let nodes = watch_all::<Node>(client, "nodes").map(saw_node);
    let pods = watch_all::<Pod>(client, "pods").map(saw_pod);
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

fn saw_daemon_set(change: Change<DynamicObject>) -> Seen {
    match change {
        Change::Applied(object) => match view::daemon_set(&object) {
            Ok(view) => Seen::Event(Event::DaemonSet(view)),
            Err(error) => {
                let name = object.metadata.name.unwrap_or_default();
                tracing::warn!(name, %error, "a daemonset's selector makes no sense");
                Seen::Nothing
            }
        },
        Change::Gone(id) => Seen::Event(Event::DaemonSetGone(id.uid)),
        Change::Synced => Seen::Synced(Watch::DaemonSets),
    }
}

fn saw_node(change: Change<Node>) -> Seen {
    match change {
        Change::Applied(node) => Seen::Event(Event::Node(view::node(&node))),
        Change::Gone(id) => Seen::Event(Event::NodeGone(id.name)),
        Change::Synced => Seen::Synced(Watch::Nodes),
    }
}

fn saw_pod(change: Change<Pod>) -> Seen {
    match change {
        Change::Applied(pod) => Seen::Event(Event::Pod(view::pod(&pod))),
        Change::Gone(id) => Seen::Event(Event::PodGone(id.uid)),
        Change::Synced => Seen::Synced(Watch::Pods),
    }
}

impl Controller {
    fn saw(&mut self, seen: Seen) {
        match seen {
            Seen::Event(event) => {
                if let Event::DaemonSetGone(uid) = &event {
                    self.status_written.remove(uid);
                }
                self.tell(event);
            }
            // The planner acts once all watches have delivered what there was, and stays so.
            Seen::Synced(watch) => {
                if self.unsynced.remove(&watch) && self.unsynced.is_empty() {
                    self.tell(Event::Synced);
                }
            }
            Seen::Nothing => {}
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
