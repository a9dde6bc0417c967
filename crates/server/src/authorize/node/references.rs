//! What a pod names: the objects that its node must read to run it.
//!
//! Read from stored bytes with a few borrowed strings, since every pod of the cluster passes here once
//! when it is bound and once when it goes. Which node may read what is decided elsewhere.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;

/// The annotation of pods that a node runs by itself and only shows in the API.
pub(crate) const MIRROR: &str = "kubernetes.io/config.mirror";

/// The kinds of objects that pods name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Named {
    ConfigMap,
    Secret,
    ServiceAccount,
    Claim,
}

/// The parts of a pod that name other objects.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct PodShape<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
    #[serde(borrow)]
    spec: Spec<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    annotations: Option<Annotations<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Annotations<'a> {
    #[serde(borrow, rename = "kubernetes.io/config.mirror")]
    mirror: Option<Cow<'a, str>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec<'a> {
    #[serde(borrow)]
    service_account_name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    image_pull_secrets: Option<Vec<Reference<'a>>>,
    #[serde(borrow)]
    containers: Option<Vec<Container<'a>>>,
    #[serde(borrow)]
    init_containers: Option<Vec<Container<'a>>>,
    #[serde(borrow)]
    ephemeral_containers: Option<Vec<Container<'a>>>,
    #[serde(borrow)]
    volumes: Option<Vec<Volume<'a>>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Container<'a> {
    #[serde(borrow)]
    env: Option<Vec<Variable<'a>>>,
    #[serde(borrow)]
    env_from: Option<Vec<Source<'a>>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Variable<'a> {
    #[serde(borrow)]
    value_from: Option<Source<'a>>,
}

/// Where variables come from.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Source<'a> {
    #[serde(borrow, rename = "configMapKeyRef")]
    map_key: Option<Reference<'a>>,
    #[serde(borrow, rename = "configMapRef")]
    map: Option<Reference<'a>>,
    #[serde(borrow, rename = "secretKeyRef")]
    secret_key: Option<Reference<'a>>,
    #[serde(borrow, rename = "secretRef")]
    secret: Option<Reference<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Reference<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Volume<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    config_map: Option<Reference<'a>>,
    #[serde(borrow)]
    secret: Option<Backing<'a>>,
    #[serde(borrow)]
    projected: Option<Projected<'a>>,
    #[serde(borrow)]
    persistent_volume_claim: Option<Claim<'a>>,
    ephemeral: Option<IgnoredAny>,
    #[serde(borrow)]
    azure_file: Option<Backing<'a>>,
    #[serde(borrow)]
    cephfs: Option<Backing<'a>>,
    #[serde(borrow)]
    cinder: Option<Backing<'a>>,
    #[serde(borrow)]
    csi: Option<Backing<'a>>,
    #[serde(borrow, rename = "flexVolume")]
    flex: Option<Backing<'a>>,
    #[serde(borrow)]
    iscsi: Option<Backing<'a>>,
    #[serde(borrow)]
    rbd: Option<Backing<'a>>,
    #[serde(borrow, rename = "scaleIO")]
    scale_io: Option<Backing<'a>>,
    #[serde(borrow)]
    storageos: Option<Backing<'a>>,
}

/// The secrets of a volume, in the various fields that volumes have for them.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Backing<'a> {
    #[serde(borrow)]
    secret_name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    secret_ref: Option<Reference<'a>>,
    #[serde(borrow)]
    node_publish_secret_ref: Option<Reference<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Projected<'a> {
    #[serde(borrow)]
    sources: Option<Vec<Projection<'a>>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Projection<'a> {
    #[serde(borrow)]
    config_map: Option<Reference<'a>>,
    #[serde(borrow)]
    secret: Option<Reference<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Claim<'a> {
    #[serde(borrow)]
    claim_name: Option<Cow<'a, str>>,
}

impl<'a> PodShape<'a> {
    /// Reads a stored pod. Bytes that are no pod name nothing.
    pub(crate) fn read(bytes: &'a [u8]) -> Self {
        serde_json::from_slice(bytes).unwrap_or_default()
    }

    /// Whether its node runs it by itself. Such a pod gives its node no rights.
    pub(crate) fn is_mirror(&self) -> bool {
        let annotations = self.metadata.annotations.as_ref();
        annotations.is_some_and(|a| a.mirror.is_some())
    }

    /// Calls `found` with everything the pod names, some perhaps more than once.
    pub(crate) fn each(&self, found: &mut dyn FnMut(Named, &str)) {
        let spec = &self.spec;
        put(
            Named::ServiceAccount,
            spec.service_account_name.as_ref(),
            found,
        );
        for secret in spec.image_pull_secrets.iter().flatten() {
            put(Named::Secret, secret.name.as_ref(), found);
        }
        let containers = [
            &spec.containers,
            &spec.init_containers,
            &spec.ephemeral_containers,
        ];
        for container in containers.into_iter().flatten().flatten() {
            container.each(found);
        }
        let pod = self.metadata.name.as_deref().unwrap_or_default();
        for volume in spec.volumes.iter().flatten() {
            volume.each(pod, found);
        }
    }
}

impl Container<'_> {
    fn each(&self, found: &mut dyn FnMut(Named, &str)) {
        let values = self.env.iter().flatten();
        let values = values.filter_map(|variable| variable.value_from.as_ref());
        for source in values.chain(self.env_from.iter().flatten()) {
            refer(Named::ConfigMap, source.map_key.as_ref(), found);
            refer(Named::ConfigMap, source.map.as_ref(), found);
            refer(Named::Secret, source.secret_key.as_ref(), found);
            refer(Named::Secret, source.secret.as_ref(), found);
        }
    }
}

impl Volume<'_> {
    fn each(&self, pod: &str, found: &mut dyn FnMut(Named, &str)) {
        refer(Named::ConfigMap, self.config_map.as_ref(), found);
        let backings = [
            &self.secret,
            &self.azure_file,
            &self.cephfs,
            &self.cinder,
            &self.csi,
            &self.flex,
            &self.iscsi,
            &self.rbd,
            &self.scale_io,
            &self.storageos,
        ];
        for backing in backings.into_iter().flatten() {
            put(Named::Secret, backing.secret_name.as_ref(), found);
            refer(Named::Secret, backing.secret_ref.as_ref(), found);
            refer(
                Named::Secret,
                backing.node_publish_secret_ref.as_ref(),
                found,
            );
        }
        let sources = self.projected.iter().filter_map(|p| p.sources.as_ref());
        for source in sources.flatten() {
            refer(Named::ConfigMap, source.config_map.as_ref(), found);
            refer(Named::Secret, source.secret.as_ref(), found);
        }
        if let Some(claim) = &self.persistent_volume_claim {
            put(Named::Claim, claim.claim_name.as_ref(), found);
        } else if let (Some(_), Some(name)) = (&self.ephemeral, &self.name) {
            // The claim that is made for the pod has both names.
            found(Named::Claim, &format!("{pod}-{name}"));
        }
    }
}

fn refer(kind: Named, reference: Option<&Reference<'_>>, found: &mut dyn FnMut(Named, &str)) {
    if let Some(reference) = reference {
        put(kind, reference.name.as_ref(), found);
    }
}

fn put(kind: Named, name: Option<&Cow<'_, str>>, found: &mut dyn FnMut(Named, &str)) {
    if let Some(name) = name.filter(|name| !name.is_empty()) {
        found(kind, name);
    }
}

#[cfg(test)]
mod tests;
