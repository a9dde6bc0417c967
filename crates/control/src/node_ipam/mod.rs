//! The node IPAM controller: gives each node that asks a range for its pods, and publishes the network of each node in an
//! object of its own. It writes what [`kennel_core::node_ipam`] and [`kennel_core::pod_network::object`] decide.
//!
//! ```text
//!   nodes ─▶ node_ipam ─▶ spec.podCIDRs              nodes, objects ─▶ directory ─▶ ConfigMaps, which agents watch
//! ```

mod view;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kennel_client::backoff::{Failures, Policy};
use kennel_client::events::{Note, Recorder, Reference};
use kennel_client::write::{Call, Content, Failure, Writer};
use kennel_client::{Error, api, feed};
use kennel_core::cidr::Cidr;
use kennel_core::node_ipam::{self as rules, Action, Ipam, NODE_BITS};
use kennel_core::pod_network::object::{self, Directory, Stored, Write};
use kennel_types::{Identity, Node};
use kube::Client;
use kube::api::Api;
use kube::runtime::watcher::Config;
use serde_json::json;

use crate::frame::{self, Context, Controller, Setup, Update, Watches};
use crate::informers::Informers;
use crate::nodes;

/// After a failed write.
const RETRY: Policy = Policy::exponential(Duration::from_millis(100), Duration::from_secs(10));

enum Event {
    Node(Update<Arc<Node>>),
    Object(Update<Stored>),
}

enum Outcome {
    /// The node's uid, and whether its range was written.
    Assigned(Arc<str>, bool),
    AssignRetryDue(Arc<str>),
    /// The object's name, and whether it was written.
    Published(String, bool),
    PublishRetryDue(String),
}

struct NodeIpam {
    cluster: Cidr,
    writer: Writer,
    recorder: Recorder,
    ipam: Ipam,
    directory: Directory,
    /// By uid.
    failures: Failures<Arc<str>>,
    /// By name.
    object_failures: Failures<String>,
}

/// Runs until `setup.stop` is cancelled. Subscribes to the informers, so call it before they run.
pub fn run(
    client: Client,
    informers: &mut Informers,
    cluster: Cidr,
    setup: Setup,
) -> impl Future<Output = Result<(), Error>> + Send + use<> {
    let mut watches = Watches::default();
    watches.add("nodes", informers.nodes.subscribe(), Event::Node);
    let objects: Api<ConfigMap> = Api::namespaced(client.clone(), object::NAMESPACE);
    let labelled = Config::default().labels(object::SELECTOR);
    let resource = "nodes' networks";
    watches.add(
        resource,
        feed::watch(objects, labelled, resource),
        |update| Event::Object(update.map(|object| view::stored(&object))),
    );
    let (writer, recorder, recording) = setup.recording_writer(client, "node-controller");
    let controller = NodeIpam {
        cluster,
        writer,
        recorder,
        ipam: Ipam::new(cluster),
        directory: Directory::new(cluster),
        failures: Failures::new(RETRY),
        object_failures: Failures::new(RETRY),
    };
    frame::run_with(controller, watches, recording, setup)
}

impl Controller for NodeIpam {
    type Event = Event;
    type Outcome = Outcome;

    fn name(&self) -> &'static str {
        "node IPAM controller"
    }

    fn handle(&mut self, event: Event, _: &mut Context<Self>) {
        match event {
            Event::Node(Update::Applied(node)) => {
                self.ipam.on_node(view::ipam(&node));
                self.directory.on_node(view::network(&node));
            }
            Event::Node(Update::Gone(id)) => {
                self.ipam.on_node_deleted(&id.uid);
                self.directory.on_node_deleted(&id.name, &id.uid);
                self.failures.reset(&id.uid);
            }
            Event::Object(Update::Applied(stored)) => {
                self.ipam.on_published(&stored.name, stored.range());
                self.directory.on_object(stored);
            }
            Event::Object(Update::Gone(id)) => {
                self.ipam.on_published(&id.name, None);
                self.directory.on_object_deleted(&id.name, &id.uid);
            }
        }
    }

    fn synced(&mut self, _: &mut Context<Self>) {
        self.ipam.on_synced();
    }

    fn reconcile(&mut self, cx: &mut Context<Self>) {
        for action in self.ipam.take_actions() {
            match action {
                Action::Assign { name, uid, range } => {
                    let writer = self.writer.clone();
                    cx.spawn(async move {
                        let assigned = assign(&writer, &name, &uid, range).await;
                        Outcome::Assigned(uid, assigned)
                    });
                }
                Action::Exhausted { name, uid } => self.report_exhausted(&name, &uid),
            }
        }
        for write in self.directory.take_writes() {
            let writer = self.writer.clone();
            cx.spawn(async move {
                let published = publish(&writer, &write).await;
                Outcome::Published(write.name().to_owned(), published)
            });
        }
    }

    fn completed(&mut self, outcome: Outcome, cx: &mut Context<Self>) {
        match outcome {
            Outcome::Assigned(uid, true) => self.failures.reset(&uid),
            Outcome::Assigned(uid, false) => {
                let delay = self.failures.next_delay(uid.clone());
                cx.after(delay, Outcome::AssignRetryDue(uid));
            }
            Outcome::AssignRetryDue(uid) => self.ipam.retry(&uid),
            Outcome::Published(name, true) => {
                self.object_failures.reset(&name);
                self.directory.written(&name);
            }
            Outcome::Published(name, false) => {
                self.directory.written(&name);
                let delay = self.object_failures.next_delay(name.clone());
                cx.after(delay, Outcome::PublishRetryDue(name));
            }
            Outcome::PublishRetryDue(name) => self.directory.retry(&name),
        }
    }
}

impl NodeIpam {
    fn report_exhausted(&self, name: &str, uid: &str) {
        let (total, used) = self.ipam.usage();
        let message = format!(
            "Node {name} status is now: CIDRNotAvailable: {used} of {total} ranges of /{NODE_BITS} in --cluster-cidr={} are in \
             use; start `kennel up` with a larger --cluster-cidr, or delete Nodes that are gone",
            self.cluster
        );
        tracing::warn!("{message}");
        let about = Reference::new("v1", "Node", &Identity::new("", name, uid));
        self.recorder
            .emit(about, Note::new(true, rules::NOT_AVAILABLE, message).once());
    }
}

/// The uid makes sure that the range does not go to a later node of the same name.
async fn assign(writer: &Writer, name: &str, uid: &str, range: Cidr) -> bool {
    let range = range.to_string();
    let patch = json!({
        "metadata": {"uid": uid},
        "spec": {"podCIDR": range, "podCIDRs": [range]},
    });
    let call = Call::patch(api::node_path(name), Content::Merge, &patch);
    match writer.send_idempotent(&call).await {
        Ok(_) => {
            tracing::info!("node {name} has the pod range {range}");
            true
        }
        // The watch delivers its deletion.
        Err(failure) if failure.is(404) => true,
        Err(failure) => {
            if !failure.is(409) {
                tracing::warn!("writing the pod range of node {name} failed: {failure}");
            }
            false
        }
    }
}

async fn publish(writer: &Writer, write: &Write) -> bool {
    let collection = api::core_path(object::NAMESPACE, "configmaps");
    let path = format!("{collection}/{}", write.name());
    let sent: Result<_, Failure> = match write {
        Write::Create(object) => {
            writer
                .send(&Call::create(collection, object.to_string()))
                .await
        }
        Write::Replace(object) => writer.send(&Call::replace(path, object)).await,
        Write::DeleteIfNodeIsGone(name, _) if !is_gone(writer, name).await => return false,
        Write::Delete(_, uid) | Write::DeleteIfNodeIsGone(_, uid) => {
            writer.send(&Call::delete(path, uid)).await
        }
    };
    match sent {
        Ok(_) => true,
        // Another version is on its way.
        Err(failure) if failure.is(404) || failure.is(409) => false,
        Err(failure) => {
            tracing::warn!(
                "publishing the network of node {} failed: {failure}",
                write.name()
            );
            false
        }
    }
}

/// False if it exists, or if the API gave no clear answer.
async fn is_gone(writer: &Writer, node: &str) -> bool {
    let exists = nodes::exists(writer, node).await;
    let exists = exists.inspect_err(|failure| {
        tracing::debug!(
            "keeping the network of node {node}: it is in no list, and getting it failed: {failure}"
        );
    });
    matches!(exists, Ok(false))
}
