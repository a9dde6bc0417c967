//! Events about a pod, in the words that users of kubelets know.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use kennel_client::events::{Note, Recorder, Reference};

use super::Pod;

/// Says things about one pod.
#[derive(Clone)]
pub(super) struct Voice {
    recorder: Recorder,
    about: Reference,
}

impl Voice {
    pub(super) fn of(recorder: &Recorder, pod: &Pod) -> Self {
        let version = pod.metadata()["resourceVersion"].as_str();
        let about = Reference {
            api_version: "v1",
            kind: "Pod",
            namespace: pod.id.namespace.as_str().into(),
            name: pod.id.name.as_str().into(),
            uid: pod.id.uid.as_str().into(),
            resource_version: version.unwrap_or_default().to_owned(),
            field_path: String::new(),
        };
        let recorder = recorder.clone();
        Self { recorder, about }
    }

    /// The same voice, about a container of the pod.
    pub(super) fn of_container(&self, pod: &Pod, name: &str) -> Self {
        let mut inits = pod.spec.init_containers.iter();
        let list = if inits.any(|container| container.name == name) {
            "initContainers"
        } else {
            "containers"
        };
        let mut voice = self.clone();
        voice.about.field_path = format!("spec.{list}{{{name}}}");
        voice
    }

    /// Says what is as it should be.
    pub(super) fn say(&self, reason: &'static str, message: impl Into<String>) {
        self.emit(false, reason, message.into());
    }

    /// Warns.
    pub(super) fn warn(&self, reason: &'static str, message: impl Into<String>) {
        self.emit(true, reason, message.into());
    }

    fn emit(&self, warning: bool, reason: &'static str, message: String) {
        tracing::debug!(pod = %self.about.name, reason, "{message}");
        let note = Note {
            warning,
            reason,
            message,
        };
        self.recorder.emit(self.about.clone(), note);
    }
}

/// A reason that is worked out, such as `OutOfexample.com/gpu`, as the word that events want. There are only as
/// many as the node has resources: each is kept once and for ever.
pub(super) fn word(reason: &str) -> &'static str {
    static WORDS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut words = WORDS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = words.get(reason) {
        return known;
    }
    let word: &'static str = Box::leak(reason.to_owned().into_boxed_str());
    words.insert(word);
    word
}
