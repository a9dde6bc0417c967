//! Asks containers how they are, and runs their hooks after the start: one task per question, never two at once.

use std::sync::Arc;

use kennel_core::pod::memory::{Answer, Hook};
use kennel_core::pod::probe::Kind;
use kennel_core::pod::{Container, Instant, Run};
use serde_json::Value;

use super::{Outcome, Worker, sooner};
use crate::pods::needs::{Question, Unwell};

impl Worker {
    /// Asks what is due. Says when the next question is.
    pub(super) fn ask(&mut self, now: Instant) -> Option<Instant> {
        let pod = Arc::clone(&self.pod);
        let spec = &pod.spec;
        let mut wake = None;
        for container in spec.init_containers.iter().chain(&spec.containers) {
            if self.busy.contains(&container.name) {
                continue;
            }
            let Some(run) = self.observed.latest(&container.name).cloned() else {
                continue;
            };
            let Some(remembered) = self.memory.of(&container.name) else {
                continue;
            };
            if remembered.hook(&run) == Some(&Hook::Due) {
                self.run_hook(container, &run);
                continue;
            }
            for (kind, due) in remembered.questions(&run) {
                // Who is ending is not restarted, but still says when it takes no more work.
                let idle = self.fate.is_some() && kind != Kind::Readiness;
                if idle || self.asking.contains(&(container.name.clone(), kind)) {
                    continue;
                }
                if due <= now {
                    self.question(container, &run, kind);
                } else {
                    wake = sooner(wake, Some(due));
                }
            }
        }
        wake
    }

    fn run_hook(&mut self, container: &Container, run: &Run) {
        if self.fate.is_some() || !self.hooking.insert(run.id.clone()) {
            return;
        }
        let handler = self.raw(&container.name)["lifecycle"]["postStart"].clone();
        let asked = self.asked(container, run, handler);
        let voice = self.voice_of(&container.name);
        self.tasks.spawn(async move {
            let result = asked.hook().await;
            if let Err(why) = &result {
                tracing::debug!(container = %asked.container.name, "postStart: {why}");
                voice.warn("FailedPostStartHook", "PostStartHook failed");
            }
            Outcome::Hook {
                name: asked.container.name,
                id: asked.id,
                well: result.is_ok(),
            }
        });
    }

    fn question(&mut self, container: &Container, run: &Run, kind: Kind) {
        self.asking.insert((container.name.clone(), kind));
        let key = match kind {
            Kind::Startup => "startupProbe",
            Kind::Liveness => "livenessProbe",
            Kind::Readiness => "readinessProbe",
        };
        let probe = self.raw(&container.name)[key].clone();
        let asked = self.asked(container, run, probe);
        let voice = self.voice_of(&container.name);
        self.tasks.spawn(async move {
            let success = match asked.probe().await {
                Ok(()) => Some(true),
                Err(Unwell::Failed(why)) => {
                    voice.warn("Unhealthy", format!("{kind:?} probe failed: {why}"));
                    Some(false)
                }
                Err(Unwell::Unknown(why)) => {
                    let message =
                        format!("{kind:?} probe errored and resulted in unknown state: {why}");
                    voice.warn("Unhealthy", message);
                    None
                }
            };
            Outcome::Answer {
                name: asked.container.name,
                id: asked.id,
                kind,
                success,
            }
        });
    }

    pub(super) fn answered(
        &mut self,
        name: String,
        id: &str,
        kind: Kind,
        success: Option<bool>,
        now: Instant,
    ) {
        if let Some(container) = self.pod.spec.container(&name) {
            match success {
                Some(success) => {
                    let answer = Answer { kind, success };
                    self.memory.answered(container, id, answer, now);
                }
                None => self.memory.not_answered(container, id, kind, now),
            }
        }
        self.asking.remove(&(name, kind));
    }

    pub(super) fn asked(&self, container: &Container, run: &Run, what: Value) -> Asked {
        let own = self.observed.sandbox.as_ref();
        let own = own.and_then(|sandbox| sandbox.addresses.first());
        let host = self.shared.parts.settings.addresses.first();
        Asked {
            shared: Arc::clone(&self.shared),
            pod: Arc::clone(&self.pod),
            container: container.clone(),
            id: run.id.clone(),
            address: own.or(host).copied(),
            what,
        }
    }
}

/// A question that a task takes along.
pub(super) struct Asked {
    shared: Arc<super::Shared>,
    pod: Arc<crate::pods::Pod>,
    container: Container,
    id: String,
    address: Option<std::net::IpAddr>,
    what: Value,
}

impl Asked {
    fn question(&self) -> Question<'_> {
        Question {
            pod: &self.pod,
            container: &self.container,
            id: &self.id,
            address: self.address,
            what: &self.what,
        }
    }

    async fn probe(&self) -> Result<(), Unwell> {
        self.shared.parts.probes.ask(&self.question()).await
    }

    pub(super) async fn hook(&self) -> Result<(), String> {
        self.shared.parts.probes.hook(&self.question()).await
    }
}
