//! The environment of a container, and what is written with it: command, arguments, paths.

mod expand;
pub(super) mod field;
pub(super) mod resource;

use std::collections::BTreeMap;

use serde_json::Value;

pub(super) use self::expand::expand;
use self::field::Place;
use super::objects::{Contents, Key, Kind, Objects};
use super::tree::{flag, list, text};
use crate::agent::ApiAddress;
use crate::pods::Pod;

/// What variables are made from.
pub(super) struct Sources<'a> {
    pub(super) pod: &'a Pod,
    pub(super) place: Place<'a>,
    pub(super) objects: &'a Objects,
    pub(super) allocatable: &'a Value,
    pub(super) api: Option<&'a ApiAddress>,
}

/// The variables of a container, and what is to be said about those that were left out.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Variables {
    pub(super) all: BTreeMap<String, String>,
    pub(super) skipped: Vec<String>,
}

impl Variables {
    /// Replaces `$(NAME)`.
    pub(super) fn expand(&self, text: &str) -> String {
        expand(text, |name| self.all.get(name).cloned())
    }
}

impl Sources<'_> {
    /// Works out the variables of a container.
    pub(super) async fn variables(&self, container: &Value) -> Result<Variables, String> {
        let mut variables = Variables::default();
        for from in list(container, "envFrom") {
            self.all_keys(from, &mut variables).await?;
        }
        let service = self.service();
        for variable in list(container, "env") {
            let known = |name: &str| {
                let own = variables.all.get(name);
                own.or_else(|| service.get(name)).cloned()
            };
            let value = match text(variable, "value") {
                "" => self.value_from(container, &variable["valueFrom"]).await?,
                value => Some(expand(value, known)),
            };
            if let Some(value) = value {
                let name = text(variable, "name").to_owned();
                variables.all.insert(name, value);
            }
        }
        for (name, value) in service {
            variables.all.entry(name).or_insert(value);
        }
        Ok(variables)
    }

    /// Where the API is. Cluster IPs carry no traffic, so it is the server's own address, and no other service
    /// has variables.
    fn service(&self) -> BTreeMap<String, String> {
        let Some(api) = self.api else {
            return BTreeMap::new();
        };
        let port = api.port.to_string();
        let variables = [
            ("KUBERNETES_SERVICE_HOST", api.host.clone()),
            ("KUBERNETES_SERVICE_PORT", port.clone()),
            ("KUBERNETES_SERVICE_PORT_HTTPS", port),
        ];
        let owned = variables.map(|(name, value)| (name.to_owned(), value));
        owned.into_iter().collect()
    }

    /// None where an optional source has nothing: the variable is then not set at all.
    async fn value_from(&self, container: &Value, from: &Value) -> Result<Option<String>, String> {
        let Some((kind, reference)) = from.as_object().and_then(|from| from.iter().next()) else {
            return Ok(Some(String::new()));
        };
        let of_object = |kind| self.key(kind, reference);
        match kind.as_str() {
            "fieldRef" => {
                field::value(self.pod, text(reference, "fieldPath"), &self.place).map(Some)
            }
            "resourceFieldRef" => {
                let named = self.pod.raw_container(text(reference, "containerName"));
                let container = named.unwrap_or(container);
                resource::value(container, reference, self.allocatable).map(Some)
            }
            "configMapKeyRef" => of_object(Kind::ConfigMap).await,
            "secretKeyRef" => of_object(Kind::Secret).await,
            other => Err(format!(
                "this node cannot set a variable from {other}; write it as value, or use a configMap"
            )),
        }
    }

    async fn key(&self, kind: Kind, reference: &Value) -> Result<Option<String>, String> {
        let Some(object) = self.object(kind, reference).await? else {
            return Ok(None);
        };
        let key = text(reference, "key");
        match object.variable(key) {
            None if !flag(reference, "optional") => {
                let (namespace, name) = (&self.pod.id.namespace, text(reference, "name"));
                let kind = match kind {
                    Kind::ConfigMap => "ConfigMap",
                    Kind::Secret => "Secret",
                };
                Err(format!(
                    "couldn't find key {key} in {kind} {namespace}/{name}"
                ))
            }
            found => Ok(found),
        }
    }

    /// The object, or nothing if it is not there and need not be.
    async fn object(
        &self,
        kind: Kind,
        reference: &Value,
    ) -> Result<Option<std::sync::Arc<Contents>>, String> {
        let key = Key {
            kind,
            namespace: self.pod.id.namespace.clone(),
            name: text(reference, "name").to_owned(),
        };
        match self.objects.get(&key).await? {
            None if !flag(reference, "optional") => {
                Err(format!("{} \"{}\" not found", kind.name(), key.name))
            }
            found => Ok(found),
        }
    }

    /// All keys of an object whose names can be those of variables.
    async fn all_keys(&self, from: &Value, variables: &mut Variables) -> Result<(), String> {
        let (kind, reference) = match &from["configMapRef"] {
            Value::Null => (Kind::Secret, &from["secretRef"]),
            reference => (Kind::ConfigMap, reference),
        };
        let Some(object) = self.object(kind, reference).await? else {
            return Ok(());
        };
        let mut invalid = Vec::new();
        for key in object.data.keys() {
            let name = format!("{}{key}", text(from, "prefix"));
            if !kennel_core::names::env_var_name(&name).is_empty() {
                invalid.push(name);
            } else if let Some(value) = object.variable(key) {
                variables.all.insert(name, value);
            }
        }
        if !invalid.is_empty() {
            let kind = match kind {
                Kind::ConfigMap => "configMap",
                Kind::Secret => "secret",
            };
            let (invalid, namespace) = (invalid.join(", "), &self.pod.id.namespace);
            variables.skipped.push(format!(
                "Keys [{invalid}] from the EnvFrom {kind} {namespace}/{} were skipped since they are considered \
                 invalid environment variable names.",
                text(reference, "name")
            ));
        }
        Ok(())
    }
}
