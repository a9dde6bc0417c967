//! Events about objects (`kubectl describe` shows them), written as Kubernetes' own recorder does.
//!
//! Nobody waits for an event: when the API is slower than the news, news is dropped.

mod correlate;
pub mod reasons;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::clock;
use crate::write::{Call, Content, Failure, Writer};
use correlate::{Correlator, Verdict};

/// How many notes may wait to be written.
const WAITING: usize = 1000;
/// How often an event is tried while the API cannot be reached.
const TRIES: u32 = 12;
/// How long to wait between tries.
const BETWEEN_TRIES: Duration = Duration::from_secs(10);

/// The object that an event is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Group and version.
    pub api_version: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Namespace; empty for what is in none.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// Uid.
    pub uid: Arc<str>,
    /// The version that it had, if known.
    pub resource_version: String,
    /// The part of it that is meant, such as `spec.containers{web}`; empty for all of it.
    pub field_path: String,
}

impl Reference {
    /// The node that we are, as its own events name it: upstream's have its name for a uid.
    pub fn own_node(name: &str) -> Self {
        Self {
            api_version: "v1",
            kind: "Node",
            namespace: "".into(),
            name: name.into(),
            uid: name.into(),
            resource_version: String::new(),
            field_path: String::new(),
        }
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

    /// The namespace of events about it.
    fn home(&self) -> &str {
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

/// What to say about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// A `Warning`, not `Normal`.
    pub warning: bool,
    /// One word, for machines.
    pub reason: Cow<'static, str>,
    /// For people.
    pub message: String,
}

/// Takes notes. Copies share their queue.
#[derive(Clone, Debug)]
pub struct Recorder {
    notes: mpsc::Sender<(Reference, Note)>,
    component: &'static str,
}

impl Recorder {
    /// A recorder, and the work of writing what it takes: run it, until stopped or until all
    /// recorders are gone. `component` is the source that events name.
    pub fn new(
        writer: Writer,
        component: &'static str,
        stop: CancellationToken,
    ) -> (Self, impl Future<Output = ()> + Send) {
        Self::on(writer, component, "", stop)
    }

    /// As [`new`](Self::new), for who speaks from a node and says which: a node may write no others.
    pub fn on(
        writer: Writer,
        component: &'static str,
        node: &str,
        stop: CancellationToken,
    ) -> (Self, impl Future<Output = ()> + Send + use<>) {
        let (notes, taken) = mpsc::channel(WAITING);
        let scribe = Scribe {
            writer,
            component,
            node: node.to_owned(),
            correlator: Correlator::default(),
            began: Instant::now(),
        };
        (Self { notes, component }, scribe.run(taken, stop))
    }

    /// Takes a note, or drops it if too many wait.
    pub fn emit(&self, about: Reference, note: Note) {
        debug_assert!(
            reasons::knows(self.component, about.kind, &note),
            "the reference does not know this event of {} on a {}: {note:?}",
            self.component,
            about.kind,
        );
        if self.notes.try_send((about, note)).is_err() {
            tracing::debug!("an event was dropped");
        }
    }
}

struct Scribe {
    writer: Writer,
    component: &'static str,
    /// Where it speaks from; empty for nowhere in particular.
    node: String,
    correlator: Correlator,
    began: Instant,
}

impl Scribe {
    async fn run(mut self, mut taken: mpsc::Receiver<(Reference, Note)>, stop: CancellationToken) {
        let write_all = async {
            while let Some((about, note)) = taken.recv().await {
                self.write(&about, &note).await;
            }
        };
        tokio::select! {
            () = write_all => {}
            () = stop.cancelled() => {}
        }
    }

    async fn write(&mut self, about: &Reference, note: &Note) {
        let now = self.began.elapsed();
        let at = clock::now_rfc3339();
        match self.correlator.judge(about, note, now) {
            Verdict::Drop => {}
            Verdict::Create { message, key } => {
                self.create(about, note, &message, (key, 1, at)).await;
            }
            Verdict::Count {
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
                    Ok(()) => self.correlator.wrote(key, name, count, first, now),
                    // It has expired: begin again.
                    Err(failure) if failure.is(404) => {
                        self.create(about, note, &message, (key, count, first))
                            .await;
                    }
                    Err(failure) => tracing::debug!("an event was not counted: {failure}"),
                }
            }
        }
    }

    /// Creates an event, to be remembered by its key, with its count and first time.
    async fn create(
        &mut self,
        about: &Reference,
        note: &Note,
        message: &str,
        (key, count, first): (String, u64, String),
    ) {
        let name = format!("{}.{:x}", about.name, clock::now_nanos());
        let mut body = json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": about.home()},
            "involvedObject": about.involved(),
            "reason": note.reason,
            "message": message,
            "source": {"component": self.component},
            "firstTimestamp": first,
            "lastTimestamp": clock::now_rfc3339(),
            "count": count,
            "type": if note.warning { "Warning" } else { "Normal" },
            "reportingComponent": self.component,
            "reportingInstance": self.node,
        });
        if !self.node.is_empty() {
            body["source"]["host"] = self.node.as_str().into();
        }
        match self
            .send(&Call::create(collection(about), body.to_string()))
            .await
        {
            Ok(()) => {
                let now = self.began.elapsed();
                self.correlator.wrote(key, name, count, first, now);
            }
            Err(failure) => tracing::debug!("an event was not written: {failure}"),
        }
    }

    /// Tries again only while there is no answer at all.
    async fn send(&self, call: &Call) -> Result<(), Failure> {
        let mut tries = 1;
        loop {
            match self.writer.send(call).await {
                Ok(_) => return Ok(()),
                Err(failure) if failure.code.is_none() && !failure.fenced && tries < TRIES => {
                    tries += 1;
                    tokio::time::sleep(BETWEEN_TRIES).await;
                }
                // The first try got through, but its answer did not.
                Err(failure) if failure.is(409) && tries > 1 => return Ok(()),
                Err(failure) => return Err(failure),
            }
        }
    }
}

fn collection(about: &Reference) -> String {
    format!("/api/v1/namespaces/{}/events", about.home())
}

#[cfg(test)]
mod tests;
