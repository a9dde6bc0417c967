//! The ConfigMaps and Secrets that a pod template names.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// See the [module](self).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct References {
    /// By name; `true` if the pods need it.
    pub config_maps: BTreeMap<String, bool>,
    pub secrets: BTreeSet<String>,
}

pub fn references(template: &Value) -> References {
    let mut found = References::default();
    let mut template = template.clone();
    visit(&mut template, &mut |mut reference| {
        let needed = reference.object.get("optional") != Some(&Value::Bool(true));
        if let Some(name) = reference.config_map_mut().and_then(|name| name.as_str()) {
            *found.config_maps.entry(name.to_owned()).or_default() |= needed;
        } else if let Some(name) = reference.secret() {
            found.secrets.insert(name.to_owned());
        }
    });
    found
}

/// An object that names a ConfigMap or a Secret.
pub(super) struct Reference<'a> {
    object: &'a mut Value,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    ConfigMap,
    Secret,
    /// As a volume, whose member is called otherwise.
    SecretVolume,
}

impl Reference<'_> {
    /// The name, if it is a ConfigMap's and not empty.
    pub(super) fn config_map_mut(&mut self) -> Option<&mut Value> {
        let name = self.object.get_mut("name")?;
        (self.kind == Kind::ConfigMap && name.as_str().is_some_and(|name| !name.is_empty()))
            .then_some(name)
    }

    fn secret(&self) -> Option<&str> {
        let member = match self.kind {
            Kind::ConfigMap => return None,
            Kind::Secret => "name",
            Kind::SecretVolume => "secretName",
        };
        self.object.get(member)?.as_str()
    }
}

/// Calls `see` for each reference of a template.
pub(super) fn visit(template: &mut Value, see: &mut impl FnMut(Reference<'_>)) {
    let Some(spec) = template.get_mut("spec") else {
        return;
    };
    for volume in items(spec, "volumes") {
        offer(volume, "configMap", Kind::ConfigMap, see);
        offer(volume, "secret", Kind::SecretVolume, see);
        let projected = volume.get_mut("projected");
        for source in projected.into_iter().flat_map(|p| items(p, "sources")) {
            offer(source, "configMap", Kind::ConfigMap, see);
            offer(source, "secret", Kind::Secret, see);
        }
    }
    for list in ["containers", "initContainers"] {
        for container in items(spec, list) {
            for source in items(container, "envFrom") {
                offer(source, "configMapRef", Kind::ConfigMap, see);
                offer(source, "secretRef", Kind::Secret, see);
            }
            for variable in items(container, "env") {
                if let Some(source) = variable.get_mut("valueFrom") {
                    offer(source, "configMapKeyRef", Kind::ConfigMap, see);
                    offer(source, "secretKeyRef", Kind::Secret, see);
                }
            }
        }
    }
}

fn items<'a>(object: &'a mut Value, member: &str) -> impl Iterator<Item = &'a mut Value> + use<'a> {
    let list = object.get_mut(member).and_then(Value::as_array_mut);
    list.into_iter().flatten()
}

fn offer(parent: &mut Value, member: &str, kind: Kind, see: &mut impl FnMut(Reference<'_>)) {
    if let Some(object) = parent.get_mut(member).filter(|object| object.is_object()) {
        see(Reference { object, kind });
    }
}
