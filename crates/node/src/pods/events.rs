//! Records events about a pod, with the reasons and messages of upstream's kubelet.

use std::borrow::Cow;

use kennel_client::events::{Note, Recorder, Reference};
use kennel_types::Container;

use super::Pod;

/// Records events about one pod or one of its containers.
#[derive(Clone)]
pub(crate) struct PodEvents {
    recorder: Recorder,
    about: Reference,
}

impl PodEvents {
    pub(crate) fn new(recorder: &Recorder, pod: &Pod) -> Self {
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

    pub(super) fn for_container(&self, pod: &Pod, name: &str) -> Self {
        let has = |list: &[Container]| list.iter().any(|container| container.name == name);
        let list = if has(&pod.spec.init_containers) {
            "initContainers"
        } else if has(&pod.spec.ephemeral_containers) {
            "ephemeralContainers"
        } else {
            "containers"
        };
        let mut events = self.clone();
        events.about.field_path = format!("spec.{list}{{{name}}}");
        events
    }

    pub(super) fn normal(&self, reason: &'static str, message: impl Into<String>) {
        self.emit(false, reason.into(), message.into());
    }

    /// Reasons such as `OutOfexample.com/gpu` are computed, so `reason` may be owned.
    pub(crate) fn warn(&self, reason: impl Into<Cow<'static, str>>, message: impl Into<String>) {
        self.emit(true, reason.into(), message.into());
    }

    fn emit(&self, warning: bool, reason: Cow<'static, str>, message: String) {
        tracing::debug!(pod = %self.about.name, %reason, "{message}");
        let note = Note {
            warning,
            reason,
            message,
            once: false,
        };
        self.recorder.emit(self.about.clone(), note);
    }
}
