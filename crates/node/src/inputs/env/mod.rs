//! The environment variables of a container, and their expansion in commands, arguments and paths.

mod expand;
pub(super) mod field;
pub(super) mod resource;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

pub(super) use self::expand::expand;
use self::field::{FieldError, RuntimeFields};
use self::resource::ResourceError;
use super::objects::{Contents, Key, Kind, ObjectError, Objects};
use crate::agent::ApiAddress;
use crate::json::{flag, list, text};
use crate::pods::Pod;

/// What variables are computed from.
pub(super) struct Sources<'a> {
    pub(super) pod: &'a Pod,
    pub(super) fields: RuntimeFields<'a>,
    pub(super) objects: &'a Objects,
    pub(super) allocatable: &'a Value,
    pub(super) api: Option<&'a ApiAddress>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Variables {
    pub(super) all: BTreeMap<String, String>,
    /// Messages about keys that are not valid names of variables.
    pub(super) skipped: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum EnvError {
    #[error(transparent)]
    Object(#[from] ObjectError),
    #[error("couldn't find key {key} in {kind} {namespace}/{name}")]
    Key {
        key: String,
        kind: &'static str,
        namespace: String,
        name: String,
    },
    #[error(transparent)]
    Field(#[from] FieldError),
    #[error(transparent)]
    Resource(#[from] ResourceError),
    #[error("this node cannot set a variable from {0}; write it as value, or use a configMap")]
    Source(String),
}

impl Variables {
    pub(super) fn expand(&self, text: &str) -> String {
        expand(text, |name| self.all.get(name).cloned())
    }
}

impl Sources<'_> {
    pub(super) async fn variables(&self, container: &Value) -> Result<Variables, EnvError> {
        let mut variables = Variables::default();
        for from in list(container, "envFrom") {
            self.add_all_keys(from, &mut variables).await?;
        }
        let service = self.api_variables();
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

    /// The address of the API: of its Service, or its own where nothing carries the traffic of services. Other Services have no
    /// variables; they have names.
    fn api_variables(&self) -> BTreeMap<String, String> {
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

    /// None if an optional source does not exist: the variable is not set.
    async fn value_from(
        &self,
        container: &Value,
        from: &Value,
    ) -> Result<Option<String>, EnvError> {
        let Some((kind, reference)) = from.as_object().and_then(|from| from.iter().next()) else {
            return Ok(Some(String::new()));
        };
        let of_object = |kind| self.key(kind, reference);
        match kind.as_str() {
            "fieldRef" => {
                let path = text(reference, "fieldPath");
                Ok(Some(field::value(self.pod, path, &self.fields)?))
            }
            "resourceFieldRef" => {
                let named = self.pod.raw_container(text(reference, "containerName"));
                let container = named.unwrap_or(container);
                let value = resource::value(container, reference, self.allocatable)?;
                Ok(Some(value))
            }
            "configMapKeyRef" => of_object(Kind::ConfigMap).await,
            "secretKeyRef" => of_object(Kind::Secret).await,
            other => Err(EnvError::Source(other.to_owned())),
        }
    }

    async fn key(&self, kind: Kind, reference: &Value) -> Result<Option<String>, EnvError> {
        let Some(object) = self.object(kind, reference).await? else {
            return Ok(None);
        };
        let key = text(reference, "key");
        match object.variable(key) {
            None if !flag(reference, "optional") => Err(EnvError::Key {
                key: key.to_owned(),
                kind: match kind {
                    Kind::ConfigMap => "ConfigMap",
                    Kind::Secret => "Secret",
                },
                namespace: self.pod.id.namespace.clone(),
                name: text(reference, "name").to_owned(),
            }),
            found => Ok(found),
        }
    }

    /// None if an optional object does not exist.
    async fn object(
        &self,
        kind: Kind,
        reference: &Value,
    ) -> Result<Option<Arc<Contents>>, ObjectError> {
        let key = Key::new(self.pod, kind, text(reference, "name"));
        match self.objects.get(&key).await? {
            None if !flag(reference, "optional") => Err(ObjectError::Missing {
                kind,
                name: key.name,
            }),
            found => Ok(found),
        }
    }

    /// Adds the keys of an object that are valid names of variables.
    async fn add_all_keys(&self, from: &Value, variables: &mut Variables) -> Result<(), EnvError> {
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
