//! What is exempt from Pod Security admission.

use serde_json::Value;

#[derive(Clone, Debug, Default)]
pub struct Exemptions {
    pub namespaces: Vec<String>,
    pub users: Vec<String>,
    pub runtime_classes: Vec<String>,
}

impl Exemptions {
    pub fn namespace(&self, name: &str) -> bool {
        self.namespaces.iter().any(|exempt| exempt == name)
    }

    /// Whether the runtime class of a pod's spec is exempt.
    pub fn runtime_class(&self, spec: &Value) -> bool {
        let class = spec["runtimeClassName"].as_str().unwrap_or_default();
        !class.is_empty() && self.runtime_classes.iter().any(|exempt| exempt == class)
    }

    /// Why a request is exempt, whatever its pod.
    pub fn of_request(&self, namespace: &str, user: &str) -> Option<&'static str> {
        if self.namespace(namespace) {
            return Some("namespace");
        }
        let exempts_user = self.users.iter().any(|exempt| exempt == user);
        exempts_user.then_some("user")
    }
}
