//! The watches of simulated nodes: one of all bound pods and one of all nodes for the whole process, or those of an agent for
//! each node, with the node's own client. The [`fleet`](crate::fleet) gets the events of all of them, one by one.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::stream::{self, BoxStream, SelectAll, StreamExt as _};
use kennel_client::feed::{self, Change};
use kennel_client::work::WRITES_AT_ONCE;
use kennel_types::{Node, Pod};
use kube::Client;
use kube::api::Api;
use kube::runtime::watcher::Config;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::discard::{self, Discard};
use super::{Beside, Clients, Counts, Simulation, Watcher};

/// How many nodes begin to watch at once: as many as write at once.
const BEGINNING_AT_ONCE: usize = WRITES_AT_ONCE;

pub(super) enum WatchEvent {
    Pod(Box<Change<Pod>>),
    Node(Box<Change<Node>>),
    /// The watch of this has ended, which never ends by itself.
    Ended(&'static str),
}

impl WatchEvent {
    fn is_synced(&self) -> bool {
        match self {
            Self::Pod(change) => matches!(**change, Change::Synced),
            Self::Node(change) => matches!(**change, Change::Synced),
            Self::Ended(_) => false,
        }
    }
}

type Events = BoxStream<'static, WatchEvent>;

/// See the [module](self).
pub(super) struct Watches {
    events: SelectAll<Events>,
    /// Delivered before the next of `events`.
    early: VecDeque<WatchEvent>,
    /// Nodes whose watches list for the first time.
    beginning: BoxStream<'static, NodeWatches>,
    /// Nodes whose watches have not listed yet.
    missing: u32,
    watching: watch::Sender<u32>,
    /// Watches whose objects nobody reads.
    discarding: JoinSet<()>,
}

impl Watches {
    pub(super) fn new(clients: &Clients, simulation: &Simulation, counts: &Counts) -> Self {
        let mut watches = Self {
            events: SelectAll::new(),
            early: VecDeque::new(),
            beginning: stream::empty().boxed(),
            missing: 0,
            watching: counts.watching.clone(),
            discarding: JoinSet::new(),
        };
        match &clients.watcher {
            Watcher::Shared(client) => {
                let bound = Config::default().fields("spec.nodeName!=");
                watches.events.push(pods(client, bound));
                watches.events.push(nodes(client, Config::default()));
                watches.watching.send_replace(simulation.count);
            }
            Watcher::EachNode(beside) => {
                let node = |number| {
                    let name = simulation.node_name(number);
                    let client = (clients.node)(&name);
                    (name, client)
                };
                let all: Vec<_> = simulation.numbers().map(node).collect();
                let (beside, counts) = (*beside, counts.clone());
                let started = move |(name, client)| begin(name, client, beside, counts.clone());
                watches.missing = simulation.count;
                let beginning = stream::iter(all).map(started);
                watches.beginning = beginning.buffer_unordered(BEGINNING_AT_ONCE).boxed();
            }
        }
        watches
    }

    /// The next event. As with one watch, all pods and nodes are complete when `Synced` is delivered. Cancel-safe.
    pub(super) async fn next(&mut self) -> WatchEvent {
        loop {
            if let Some(event) = self.early.pop_front() {
                return event;
            }
            tokio::select! {
                Some(node) = self.beginning.next(), if self.missing > 0 => self.add(node),
                Some(event) = self.events.next() => return event,
                else => return WatchEvent::Ended("nodes"),
            }
        }
    }

    fn add(&mut self, node: NodeWatches) {
        self.early.extend(node.early);
        for events in node.events {
            self.events.push(events);
        }
        for discard in node.discards {
            self.discarding.spawn(discard.run());
        }
        self.missing -= 1;
        self.watching.send_modify(|count| *count += 1);
        if self.missing == 0 {
            self.early.push_back(WatchEvent::Pod(Change::Synced.into()));
            self.early
                .push_back(WatchEvent::Node(Change::Synced.into()));
        }
    }
}

fn pods(client: &Client, config: Config) -> Events {
    const WHAT: &str = "bound pods";
    let changes = feed::watch(Api::<Pod>::all(client.clone()), config, WHAT);
    let ended = stream::iter([WatchEvent::Ended(WHAT)]);
    changes
        .map(|change| WatchEvent::Pod(change.into()))
        .chain(ended)
        .boxed()
}

fn nodes(client: &Client, config: Config) -> Events {
    const WHAT: &str = "nodes";
    let changes = feed::watch(Api::<Node>::all(client.clone()), config, WHAT);
    let ended = stream::iter([WatchEvent::Ended(WHAT)]);
    changes
        .map(|change| WatchEvent::Node(change.into()))
        .chain(ended)
        .boxed()
}

/// The watches of one node, which have listed.
struct NodeWatches {
    early: Vec<WatchEvent>,
    events: [Events; 2],
    discards: Vec<Discard>,
}

/// Begins the watches of a node, and waits until they have listed.
async fn begin(name: String, client: Client, beside: Beside, counts: Counts) -> NodeWatches {
    let bound = Config::default().fields(&format!("spec.nodeName={name}"));
    let own = Config::default().fields(&format!("metadata.name={name}"));
    let mut events = [pods(&client, bound), nodes(&client, own)];
    let mut early = Vec::new();
    for events in &mut events {
        while let Some(event) = events.next().await {
            if event.is_synced() {
                break;
            }
            early.push(event);
        }
    }
    let mut discards = Vec::new();
    if beside == Beside::Mounts {
        for objects in discard::AGENT {
            let bytes = Arc::clone(&counts.discarded);
            discards.push(Discard::begin(client.clone(), objects, bytes).await);
        }
    }
    NodeWatches {
        early,
        events,
        discards,
    }
}
