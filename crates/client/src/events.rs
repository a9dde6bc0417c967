//! The event recorder: writes Events about objects, as Kubernetes' own recorder does.
//!
//! Recording never blocks. When the API is slower than the events come, the queue fills up and new events are dropped.

mod correlate;
pub mod reasons;

use std::sync::Arc;
use std::time::Duration;

use kennel_types::Identity;
pub use kennel_types::event::Note;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::backoff::{self, Policy};
use crate::clock::{self, Clock};
use crate::write::{Call, Content, Failure, Writer};
use correlate::{Correlator, Decision, Limits};

/// How many events may wait to be written.
const QUEUE: usize = 1000;
/// How often an event is sent while the API is unreachable.
const TRIES: u32 = 12;
/// Upstream's delay between tries, with jitter.
const RETRY: Policy = Policy::exponential(Duration::from_secs(10), Duration::from_secs(10));

/// The object that an event is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    pub api_version: &'static str,
    pub kind: &'static str,
    /// Empty for cluster-scoped objects.
    pub namespace: Arc<str>,
    pub name: Arc<str>,
    pub uid: Arc<str>,
    /// Empty if unknown.
    pub resource_version: String,
    /// A part of the object, such as `spec.containers{web}`; empty for the whole.
    pub field_path: String,
}

impl Reference {
    /// The whole object, at an unknown version.
    pub fn new(api_version: &'static str, kind: &'static str, object: &Identity) -> Self {
        let object = object.clone();
        Self {
            api_version,
            kind,
            namespace: object.namespace,
            name: object.name,
            uid: object.uid,
            resource_version: String::new(),
            field_path: String::new(),
        }
    }

    /// A node in events of its own agent: as upstream's kubelet does, with the name as uid.
    pub fn own_node(name: &str) -> Self {
        Self::new("v1", "Node", &Identity::new("", name, name))
    }

    fn key(&self) -> String {
        let Self {
            api_version,
            kind,
            namespace,
            name,
            uid,
            ..
        } = self;
        format!("{kind}\n{namespace}\n{name}\n{uid}\n{api_version}")
    }

    /// The namespace of events about the object.
    fn event_namespace(&self) -> &str {
        match &*self.namespace {
            "" => "default",
            namespace => namespace,
        }
    }

    fn involved(&self) -> Value {
        let mut object = json!({
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": &*self.name,
            "uid": &*self.uid,
        });
        if !self.namespace.is_empty() {
            object["namespace"] = (*self.namespace).into();
        }
        if !self.resource_version.is_empty() {
            object["resourceVersion"] = self.resource_version.as_str().into();
        }
        if !self.field_path.is_empty() {
            object["fieldPath"] = self.field_path.as_str().into();
        }
        object
    }
}

/// Records events. Clones share their queue.
#[derive(Clone, Debug)]
pub struct Recorder {
    queue: mpsc::Sender<(Reference, Note)>,
    component: &'static str,
}

impl Recorder {
    /// A recorder, and the future that writes its events: run it until `stop` is cancelled or all clones are dropped.
    /// `component` is the source that events name.
    pub fn new(
        writer: Writer,
        component: &'static str,
        stop: CancellationToken,
    ) -> (Self, impl Future<Output = ()> + Send) {
        Self::start(writer, component, ("", ""), Limits::KUBERNETES, stop)
    }

    /// As [`new`](Self::new), for a component of which several processes may run: events name the one that wrote them.
    pub fn of_instance(
        writer: Writer,
        component: &'static str,
        instance: &str,
        stop: CancellationToken,
    ) -> (Self, impl Future<Output = ()> + Send + use<>) {
        Self::start(writer, component, (instance, ""), Limits::KUBERNETES, stop)
    }

    /// As [`of_instance`](Self::of_instance), for events that each follow a change of an object's state which is written to
    /// the API: they are few, and each matters. None is aggregated, and many more are written at once.
    pub fn of_transitions(
        writer: Writer,
        component: &'static str,
        instance: &str,
        stop: CancellationToken,
    ) -> (Self, impl Future<Output = ()> + Send + use<>) {
        Self::start(writer, component, (instance, ""), Limits::TRANSITIONS, stop)
    }

    /// As [`new`](Self::new), for a component of a node: the API accepts events of a node only if they name it.
    pub fn on_node(
        writer: Writer,
        component: &'static str,
        node: &str,
        stop: CancellationToken,
    ) -> (Self, impl Future<Output = ()> + Send + use<>) {
        Self::start(writer, component, (node, node), Limits::KUBERNETES, stop)
    }

    fn start(
        writer: Writer,
        component: &'static str,
        (instance, node): (&str, &str),
        limits: Limits,
        stop: CancellationToken,
    ) -> (Self, impl Future<Output = ()> + Send + use<>) {
        let (queue, queued) = mpsc::channel(QUEUE);
        let event_writer = EventWriter {
            writer,
            component,
            instance: instance.to_owned(),
            node: node.to_owned(),
            correlator: Correlator::new(limits),
            clock: Clock::start(),
        };
        (Self { queue, component }, event_writer.run(queued, stop))
    }

    /// Queues an event, or drops it if the queue is full.
    pub fn emit(&self, about: Reference, note: Note) {
        debug_assert!(
            reasons::is_listed(self.component, about.kind, &note),
            "the table of events lacks this one of {} on a {}: {note:?}",
            self.component,
            about.kind,
        );
        if self.queue.try_send((about, note)).is_err() {
            tracing::debug!("the event queue is full: an event was dropped");
        }
    }
}

struct EventWriter {
    writer: Writer,
    component: &'static str,
    /// The `reportingInstance`; empty if there is only one.
    instance: String,
    /// Empty unless the component runs on a node.
    node: String,
    correlator: Correlator,
    clock: Clock,
}

impl EventWriter {
    async fn run(mut self, mut queued: mpsc::Receiver<(Reference, Note)>, stop: CancellationToken) {
        let write_all = async {
            while let Some((about, note)) = queued.recv().await {
                self.write(&about, &note).await;
            }
        };
        tokio::select! {
            () = write_all => {}
            () = stop.cancelled() => {}
        }
    }

    async fn write(&mut self, about: &Reference, note: &Note) {
        let now = self.clock.monotonic();
        let at = clock::now_rfc3339();
        match self.correlator.decide(about, note, now) {
            Decision::Drop => {}
            Decision::Create { message, key } => {
                self.create(about, note, &message, (key, 1, at)).await;
            }
            Decision::Count {
                name,
                count,
                message,
                first,
                key,
            } => {
                let path = format!("{}/{name}", collection(about));
                let patch = json!({"count": count, "lastTimestamp": at, "message": message});
                let call = Call::patch(path, Content::Strategic, &patch);
                match self.send(&call).await {
                    Ok(()) => self.correlator.written(key, name, count, first, now),
                    // The event has expired.
                    Err(failure) if failure.is(404) => {
                        self.create(about, note, &message, (key, count, first))
                            .await;
                    }
                    Err(failure) => tracing::debug!("counting an event failed: {failure}"),
                }
            }
        }
    }

    /// Creates an event with this correlation key, count and first timestamp.
    async fn create(
        &mut self,
        about: &Reference,
        note: &Note,
        message: &str,
        (key, count, first): (String, u64, String),
    ) {
        let name = if note.once {
            format!("{}.{}", about.name, digest(&key))
        } else {
            format!("{}.{:x}", about.name, clock::now_nanos())
        };
        let mut body = json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": about.event_namespace()},
            "involvedObject": about.involved(),
            "reason": note.reason,
            "message": message,
            "source": {"component": self.component},
            "firstTimestamp": first,
            "lastTimestamp": clock::now_rfc3339(),
            "count": count,
            "type": if note.warning { "Warning" } else { "Normal" },
            "reportingComponent": self.component,
            "reportingInstance": self.instance,
        });
        if !self.node.is_empty() {
            body["source"]["host"] = self.node.as_str().into();
        }
        let sent = self
            .send(&Call::create(collection(about), body.to_string()))
            .await;
        match sent {
            // Another process has told it.
            Err(failure) if !(note.once && failure.is(409)) => {
                tracing::debug!("writing an event failed: {failure}");
            }
            _ => {
                let now = self.clock.monotonic();
                self.correlator.written(key, name, count, first, now);
            }
        }
    }

    /// Retries only while the API does not respond at all.
    async fn send(&self, call: &Call) -> Result<(), Failure> {
        let mut tries = 1;
        loop {
            match self.writer.send(call).await {
                Ok(_) => return Ok(()),
                Err(failure) if failure.code.is_none() && !failure.fenced && tries < TRIES => {
                    tokio::time::sleep(backoff::delay(&RETRY, tries)).await;
                    tries += 1;
                }
                // An earlier try created it, but its response got lost.
                Err(failure) if failure.is(409) && tries > 1 => return Ok(()),
                Err(failure) => return Err(failure),
            }
        }
    }
}

/// The same for the same key in every process, so that the API refuses a second event with it.
fn digest(key: &str) -> String {
    let digest = Sha256::digest(key);
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    format!("{:016x}", u64::from_be_bytes(first))
}

fn collection(about: &Reference) -> String {
    format!("/api/v1/namespaces/{}/events", about.event_namespace())
}

#[cfg(test)]
mod tests;
