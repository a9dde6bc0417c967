//! Tells the API how pods are, and that they are gone.
//!
//! Of each pod only the newest status is sent, and only if the API has another. While the server is away they
//! wait, and are tried again for ever. A static pod's status goes to its mirror.

mod entry;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kennel_client::fence::Fence;
use kennel_client::work::Work;
use kennel_client::write::{Failure, Writer};
use kube::Client;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Pod;
use entry::{Entry, Errand};

/// How many requests are under way at once.
const AT_ONCE: usize = 8;
/// How long the first failure is waited out; doubled each time.
const PAUSE: Duration = Duration::from_millis(500);
/// And at most so long.
const PAUSE_MAX: Duration = Duration::from_secs(20);

enum Word {
    Tell(Arc<Pod>, Value),
    Seen(Arc<Pod>),
    Delete(Arc<Pod>),
    Forget(String),
    Mirrored(String, Option<String>),
}

/// Where to leave what is to be told. Nobody waits for it.
#[derive(Clone)]
pub(super) struct Reports(mpsc::UnboundedSender<Word>);

impl Reports {
    /// A place to leave reports, and the work of sending them.
    pub(super) fn new(client: Client, stop: CancellationToken) -> (Self, impl Future<Output = ()>) {
        let (sender, words) = mpsc::unbounded_channel();
        let reporter = Reporter {
            writer: Writer::new(client, Fence::open()),
            entries: BTreeMap::new(),
            mirrors: BTreeMap::new(),
            work: Work::new(AT_ONCE),
        };
        (Self(sender), reporter.run(words, stop))
    }

    /// A pod's status is this now.
    pub(super) fn tell(&self, pod: &Arc<Pod>, status: Value) {
        self.leave(Word::Tell(Arc::clone(pod), status));
    }

    /// The API shows this of a pod: if that is not what was told, it is told again.
    pub(super) fn seen(&self, pod: &Arc<Pod>) {
        self.leave(Word::Seen(Arc::clone(pod)));
    }

    /// Nothing of a pod is left: once its last status is told, its object may go.
    pub(super) fn delete(&self, pod: &Arc<Pod>) {
        self.leave(Word::Delete(Arc::clone(pod)));
    }

    /// Nobody wants to know about a pod any more.
    pub(super) fn forget(&self, uid: &str) {
        self.leave(Word::Forget(uid.to_owned()));
    }

    /// A static pod has this mirror now.
    pub(super) fn mirrored(&self, uid: String, mirror: Option<String>) {
        self.leave(Word::Mirrored(uid, mirror));
    }

    fn leave(&self, word: Word) {
        let _stopped = self.0.send(word);
    }
}

enum Done {
    Ended(String, Errand, Result<(), Failure>),
    Again(String),
}

struct Reporter {
    writer: Writer,
    entries: BTreeMap<String, Entry>,
    mirrors: BTreeMap<String, String>,
    work: Work<Done>,
}

impl Reporter {
    async fn run(mut self, mut words: mpsc::UnboundedReceiver<Word>, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return self.work.finish().await,
                word = words.recv() => match word {
                    Some(word) => self.hear(word),
                    None => return self.work.finish().await,
                },
                done = self.work.next() => match done {
                    Done::Ended(uid, errand, result) => self.ended(&uid, errand, result),
                    Done::Again(uid) => self.again(&uid),
                },
            }
        }
    }

    fn hear(&mut self, word: Word) {
        match word {
            Word::Tell(pod, status) => {
                let entry = self.entry(&pod);
                entry.newest = Some(Arc::new(status));
                self.drive(&pod.id.uid);
            }
            Word::Seen(pod) => {
                let entry = self.entries.get_mut(&pod.id.uid);
                if entry.is_some_and(|entry| entry.was_overwritten(&pod.object["status"])) {
                    self.drive(&pod.id.uid);
                }
            }
            Word::Delete(pod) => {
                self.entry(&pod).delete = true;
                self.drive(&pod.id.uid);
            }
            Word::Forget(uid) => {
                self.entries.remove(&uid);
                self.mirrors.remove(&uid);
            }
            Word::Mirrored(uid, mirror) => {
                if let Some(entry) = self.entries.get_mut(&uid) {
                    entry.lead_to(mirror.clone());
                }
                match mirror {
                    Some(mirror) => self.mirrors.insert(uid.clone(), mirror),
                    None => self.mirrors.remove(&uid),
                };
                self.drive(&uid);
            }
        }
    }

    fn entry(&mut self, pod: &Pod) -> &mut Entry {
        let uid = &pod.id.uid;
        let mirror = self.mirrors.get(uid);
        let entry = self.entries.entry(uid.clone());
        entry.or_insert_with(|| Entry::new(pod, mirror.cloned()))
    }

    /// Does what is next for a pod, if anything is.
    fn drive(&mut self, uid: &str) {
        let Some(entry) = self.entries.get_mut(uid) else {
            return;
        };
        let Some((errand, call)) = entry.next() else {
            return;
        };
        let (writer, uid) = (self.writer.clone(), uid.to_owned());
        self.work.push(async move {
            let result = writer.send(&call).await.map(drop);
            Done::Ended(uid, errand, result)
        });
    }

    fn again(&mut self, uid: &str) {
        if let Some(entry) = self.entries.get_mut(uid) {
            entry.waits = false;
        }
        self.drive(uid);
    }

    fn ended(&mut self, uid: &str, errand: Errand, result: Result<(), Failure>) {
        let Some(entry) = self.entries.get_mut(uid) else {
            return;
        };
        entry.waits = false;
        match result {
            Ok(()) => entry.did(errand),
            Err(failure) if failure.is(404) || (errand.is_deletion() && failure.is(409)) => {
                entry.is_gone();
            }
            Err(failure) if failure.is(422) || failure.is(400) => {
                tracing::error!(pod = %entry.pod.name, "the API does not take it: {failure}");
                entry.did(errand);
            }
            Err(failure) => {
                let pause = PAUSE.saturating_mul(2_u32.saturating_pow(entry.tries.min(16)));
                let pause = pause.min(PAUSE_MAX).mul_f64(0.75 + fastrand::f64() / 2.0);
                entry.tries += 1;
                entry.waits = true;
                tracing::debug!(pod = %entry.pod.name, ?pause, "told later: {failure}");
                return self.work.later(pause, Done::Again(uid.to_owned()));
            }
        }
        entry.tries = 0;
        self.drive(uid);
    }
}
