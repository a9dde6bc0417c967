//! What is wanted of a pod: the fields of its spec that decide over its life.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::probe::{Kind, Probe};

/// When a container that has ended is started again.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
pub enum RestartPolicy {
    /// Whenever it ends.
    #[default]
    Always,
    /// When it failed.
    OnFailure,
    /// Never.
    Never,
}

/// A pod's spec, as far as its life depends on it.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Spec {
    /// When its containers are started again.
    pub restart_policy: RestartPolicy,
    /// Those that run first, one after the other; some stay.
    pub init_containers: Vec<Container>,
    /// Those that make up the pod.
    pub containers: Vec<Container>,
    /// How long its containers get to end.
    pub termination_grace_period_seconds: u64,
    /// How long it may take in all.
    pub active_deadline_seconds: Option<u64>,
    /// Conditions set by others that must hold for it to be ready.
    pub readiness_gates: Vec<ReadinessGate>,
}

impl Default for Spec {
    fn default() -> Self {
        Self {
            restart_policy: RestartPolicy::default(),
            init_containers: Vec::new(),
            containers: Vec::new(),
            termination_grace_period_seconds: 30,
            active_deadline_seconds: None,
            readiness_gates: Vec::new(),
        }
    }
}

/// A condition that somebody else sets.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ReadinessGate {
    /// Its type.
    pub condition_type: String,
}

/// A container, as far as the pod's life depends on it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Container {
    /// Its name.
    pub name: String,
    /// Its image.
    pub image: String,
    /// `Always` makes an init container a sidecar.
    restart_policy: Option<String>,
    lifecycle: Lifecycle,
    /// Its ports, which probes may name.
    ports: Vec<Port>,
    /// When is it up?
    pub startup_probe: Option<Probe>,
    /// When must it be restarted?
    pub liveness_probe: Option<Probe>,
    /// When may it be used?
    pub readiness_probe: Option<Probe>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Lifecycle {
    post_start: Option<Value>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Port {
    name: String,
    container_port: u16,
}

impl Container {
    /// An init container that stays.
    pub fn is_sidecar(&self) -> bool {
        self.restart_policy.as_deref() == Some("Always")
    }

    /// Must a hook run well before it counts as started?
    pub fn has_post_start(&self) -> bool {
        self.lifecycle.post_start.is_some()
    }

    /// Its probe of a kind.
    pub fn probe(&self, kind: Kind) -> Option<&Probe> {
        match kind {
            Kind::Startup => self.startup_probe.as_ref(),
            Kind::Liveness => self.liveness_probe.as_ref(),
            Kind::Readiness => self.readiness_probe.as_ref(),
        }
    }

    /// The number of a port that is given by number or name.
    pub fn port(&self, port: &Value) -> Option<u16> {
        match port {
            Value::Number(number) => number.as_u64().and_then(|number| number.try_into().ok()),
            Value::String(name) => {
                let named = self.ports.iter().find(|port| port.name == *name);
                named
                    .map(|port| port.container_port)
                    .or_else(|| name.parse().ok())
            }
            _ => None,
        }
    }
}

impl Spec {
    /// Reads `spec` of a pod.
    pub fn parse(spec: &Value) -> Result<Self, serde_json::Error> {
        Self::deserialize(spec)
    }

    /// How long its containers get to end.
    pub fn grace(&self) -> Duration {
        Duration::from_secs(self.termination_grace_period_seconds)
    }

    /// A container by name, init containers included.
    pub fn container(&self, name: &str) -> Option<&Container> {
        let mut all = self.init_containers.iter().chain(&self.containers);
        all.find(|container| container.name == name)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn absent_fields_have_the_api_s_defaults() {
        let spec = Spec::parse(&json!({"containers": [{"name": "c"}]})).unwrap();
        assert_eq!(spec.grace(), Duration::from_secs(30));
        assert_eq!(spec.restart_policy, RestartPolicy::Always);
        assert!(!spec.containers[0].is_sidecar());
    }

    #[test]
    fn ports_are_found_by_number_and_name() {
        let spec = Spec::parse(&json!({"containers": [
            {"name": "c", "ports": [{"name": "web", "containerPort": 80}]}]}));
        let container = &spec.unwrap().containers[0];
        let check = |port: Value, expected| assert_eq!(container.port(&port), expected, "{port}");
        check(json!(8080), Some(8080));
        check(json!("web"), Some(80));
        check(json!("9090"), Some(9090));
        check(json!("other"), None);
        check(json!(70_000), None);
    }
}
