//! A fake API server that stores pods and events, and fake pod inputs that record which pods have files.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use http::Method;
use kennel_core::pod::tracker::StartFailure;
use kennel_types::pod::MIRROR_ANNOTATION;
use kennel_types::pod::WaitingReason;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::pods::{Origin, Pod, PodInputs, PodUpdate};
use crate::runtime::{ContainerConfig, Image, RegistryLogin, SandboxConfig};
#[derive(Default)]
pub(super) struct FakeApi {
    pub(super) pods: BTreeMap<String, Value>,
    pub(super) events: Vec<String>,
    pub(super) unavailable: bool,
    /// Deletions do not remove pods, as if they had finalizers.
    pub(super) keeps_finalized: bool,
    /// How many statuses were written.
    pub(super) writes: usize,
    pub(super) watcher: Option<mpsc::Sender<PodUpdate>>,
}

impl FakeApi {
    pub(super) fn notify(&self, update: PodUpdate) {
        if let Some(watcher) = self.watcher.as_ref().filter(|_| !self.unavailable) {
            let sent = watcher.try_send(update);
            assert!(!matches!(sent, Err(mpsc::error::TrySendError::Full(_))));
        }
    }

    pub(super) fn set(&mut self, pod: Value) {
        let name = pod["metadata"]["name"].as_str().unwrap().to_owned();
        self.pods.insert(name, pod.clone());
        if pod["metadata"]["annotations"][MIRROR_ANNOTATION].is_string() {
            return;
        }
        self.notify(PodUpdate::Set(parse(pod)));
    }

    pub(super) fn remove(&mut self, name: &str) {
        if let Some(pod) = self.pods.remove(name) {
            self.notify(PodUpdate::Removed(parse(pod).id.clone()));
        }
    }

    /// Conditions are merged by type, the rest is replaced.
    fn patch(&mut self, name: &str, patch: &Value) -> (u16, Value) {
        let Some(mut pod) = self.pods.get(name).cloned() else {
            return (404, json!({"message": "not found", "code": 404}));
        };
        if pod["metadata"]["uid"] != patch["metadata"]["uid"] {
            return (409, json!({"message": "another uid", "code": 409}));
        }
        let mut conditions: BTreeMap<String, Value> = BTreeMap::new();
        for status in [&pod["status"], &patch["status"]] {
            for condition in status["conditions"].as_array().into_iter().flatten() {
                let kind = condition["type"].as_str().unwrap().to_owned();
                conditions.insert(kind, condition.clone());
            }
        }
        if !pod["status"].is_object() {
            pod["status"] = json!({});
        }
        for (key, value) in patch["status"].as_object().unwrap() {
            pod["status"][key] = value.clone();
        }
        pod["status"]["conditions"] = conditions.into_values().collect();
        self.writes += 1;
        self.set(pod.clone());
        (200, pod)
    }

    pub(super) fn answer(&mut self, method: &Method, path: &str, body: &Value) -> (u16, Value) {
        let mut parts = path.split('/').skip(5);
        let (kind, name) = (parts.next(), parts.next().unwrap_or_default());
        match (method, kind) {
            (&Method::PATCH, Some("pods")) => self.patch(name, body),
            (&Method::DELETE, Some("pods")) => {
                assert_eq!(body["gracePeriodSeconds"], 0);
                if !self.keeps_finalized {
                    self.remove(name);
                }
                (200, json!({}))
            }
            (&Method::POST, Some("events")) => {
                let text = |key: &str| body[key].as_str().unwrap().to_owned();
                let event = format!("{}: {}", text("reason"), text("message"));
                self.events.push(event);
                (201, body.clone())
            }
            _ => (200, json!({})),
        }
    }
}

pub(super) fn parse(pod: Value) -> Arc<Pod> {
    Arc::new(Pod::parse(pod, Origin::Api).unwrap())
}

/// Gives what the spec says. Holds the uids of the pods that have files.
#[derive(Default)]
pub(super) struct FakeInputs(pub(super) Mutex<BTreeSet<String>>);

#[async_trait]
impl PodInputs for FakeInputs {
    async fn prepare(&self, pod: &Pod) -> Result<(), StartFailure> {
        self.0.lock().unwrap().insert(pod.id.uid.clone());
        Ok(())
    }

    async fn sandbox_config(&self, pod: &Pod, attempt: u32) -> Result<SandboxConfig, StartFailure> {
        Ok(SandboxConfig {
            pod: pod.id.clone(),
            attempt,
            host_network: pod.host_network(),
            ..SandboxConfig::default()
        })
    }

    async fn container_config(
        &self,
        pod: &Pod,
        name: &str,
        attempt: u32,
        image: &Image,
        _addresses: &[IpAddr],
    ) -> Result<ContainerConfig, StartFailure> {
        let raw = pod.raw_container(name).unwrap();
        let words = raw["command"].as_array().into_iter().flatten();
        let words = words.map(|word| word.as_str().unwrap().to_owned());
        if raw["env"].is_array() {
            return Err(StartFailure {
                reason: WaitingReason::CreateContainerConfigError,
                backoff_reason: WaitingReason::CreateContainerConfigError,
                message: "configmap \"settings\" not found".to_owned(),
            });
        }
        Ok(ContainerConfig {
            name: name.to_owned(),
            attempt,
            image: pod.spec.container(name).unwrap().image.clone(),
            image_reference: image.reference.clone(),
            command: words.collect(),
            ..ContainerConfig::default()
        })
    }

    async fn registry_logins(&self, _pod: &Pod, _image: &str) -> Vec<RegistryLogin> {
        Vec::new()
    }

    async fn termination_message(
        &self,
        _pod: &Pod,
        _name: &str,
        _attempt: u32,
        failed: bool,
    ) -> String {
        if failed { "the container failed" } else { "" }.to_owned()
    }

    fn keep_fresh(&self, _pod: &Arc<Pod>) {}

    async fn remove(&self, uid: &str) -> std::io::Result<()> {
        self.0.lock().unwrap().remove(uid);
        Ok(())
    }

    async fn list(&self) -> std::io::Result<Vec<String>> {
        Ok(self.0.lock().unwrap().iter().cloned().collect())
    }
}
