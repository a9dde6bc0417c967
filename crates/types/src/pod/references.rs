//! The objects that a pod references and that its node must read to run it.

use serde::Deserialize;
use serde::de::IgnoredAny;

use ReferencedKind::{ConfigMap, PersistentVolumeClaim, Secret, ServiceAccount};

/// The kinds of objects that pods reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReferencedKind {
    ConfigMap,
    Secret,
    ServiceAccount,
    PersistentVolumeClaim,
}

/// The fields of a pod that reference other objects.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct PodReferences {
    metadata: Metadata,
    spec: Spec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    name: Option<String>,
    annotations: Option<Annotations>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Annotations {
    #[serde(rename = "kubernetes.io/config.mirror")]
    mirror: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    service_account_name: Option<String>,
    image_pull_secrets: Option<Vec<Reference>>,
    containers: Option<Vec<Container>>,
    init_containers: Option<Vec<Container>>,
    ephemeral_containers: Option<Vec<Container>>,
    volumes: Option<Vec<Volume>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Container {
    env: Option<Vec<EnvVar>>,
    env_from: Option<Vec<EnvSource>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct EnvVar {
    value_from: Option<EnvSource>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct EnvSource {
    #[serde(rename = "configMapKeyRef")]
    map_key: Option<Reference>,
    #[serde(rename = "configMapRef")]
    map: Option<Reference>,
    #[serde(rename = "secretKeyRef")]
    secret_key: Option<Reference>,
    #[serde(rename = "secretRef")]
    secret: Option<Reference>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Reference {
    name: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Volume {
    name: Option<String>,
    config_map: Option<Reference>,
    secret: Option<VolumeSource>,
    projected: Option<Projected>,
    persistent_volume_claim: Option<VolumeSource>,
    ephemeral: Option<IgnoredAny>,
    azure_file: Option<VolumeSource>,
    cephfs: Option<VolumeSource>,
    cinder: Option<VolumeSource>,
    csi: Option<VolumeSource>,
    #[serde(rename = "flexVolume")]
    flex: Option<VolumeSource>,
    iscsi: Option<VolumeSource>,
    rbd: Option<VolumeSource>,
    #[serde(rename = "scaleIO")]
    scale_io: Option<VolumeSource>,
    storageos: Option<VolumeSource>,
}

/// A volume source that may reference a secret or a claim; the field differs by type.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct VolumeSource {
    claim_name: Option<String>,
    secret_name: Option<String>,
    secret_ref: Option<Reference>,
    node_publish_secret_ref: Option<Reference>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Projected {
    sources: Option<Vec<Projection>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Projection {
    config_map: Option<Reference>,
    secret: Option<Reference>,
}

impl PodReferences {
    /// Bytes that are not a pod have no references.
    pub fn from_slice(bytes: &[u8]) -> Self {
        serde_json::from_slice(bytes).unwrap_or_default()
    }

    /// Whether the pod mirrors a static pod of its node.
    pub fn is_mirror(&self) -> bool {
        let annotations = self.metadata.annotations.as_ref();
        annotations.is_some_and(|a| a.mirror.is_some())
    }

    /// Calls `found` for every reference, possibly more than once for an object.
    pub fn for_each(&self, found: &mut dyn FnMut(ReferencedKind, &str)) {
        let spec = &self.spec;
        report(ServiceAccount, spec.service_account_name.as_ref(), found);
        report_all(Secret, spec.image_pull_secrets.iter().flatten(), found);
        let containers = [
            &spec.containers,
            &spec.init_containers,
            &spec.ephemeral_containers,
        ];
        for container in containers.into_iter().flatten().flatten() {
            container.for_each(found);
        }
        let pod = self.metadata.name.as_deref().unwrap_or_default();
        for volume in spec.volumes.iter().flatten() {
            volume.for_each(pod, found);
        }
    }
}

impl Container {
    fn for_each(&self, found: &mut dyn FnMut(ReferencedKind, &str)) {
        let values = self.env.iter().flatten();
        let values = values.filter_map(|variable| variable.value_from.as_ref());
        for source in values.chain(self.env_from.iter().flatten()) {
            report_all(ConfigMap, source.map_key.iter().chain(&source.map), found);
            report_all(
                Secret,
                source.secret_key.iter().chain(&source.secret),
                found,
            );
        }
    }
}

impl Volume {
    fn for_each(&self, pod: &str, found: &mut dyn FnMut(ReferencedKind, &str)) {
        report_all(ConfigMap, &self.config_map, found);
        let sources = [
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
        for source in sources.into_iter().flatten() {
            report(Secret, source.secret_name.as_ref(), found);
            let references = source.secret_ref.iter();
            report_all(
                Secret,
                references.chain(&source.node_publish_secret_ref),
                found,
            );
        }
        let projections = self.projected.iter().filter_map(|p| p.sources.as_ref());
        for projection in projections.flatten() {
            report_all(ConfigMap, &projection.config_map, found);
            report_all(Secret, &projection.secret, found);
        }
        if let Some(claim) = &self.persistent_volume_claim {
            report(PersistentVolumeClaim, claim.claim_name.as_ref(), found);
        } else if let (Some(_), Some(name)) = (&self.ephemeral, &self.name) {
            // The name of the claim that is created for an ephemeral volume.
            found(PersistentVolumeClaim, &format!("{pod}-{name}"));
        }
    }
}

fn report_all<'a>(
    kind: ReferencedKind,
    references: impl IntoIterator<Item = &'a Reference>,
    found: &mut dyn FnMut(ReferencedKind, &str),
) {
    for reference in references {
        report(kind, reference.name.as_ref(), found);
    }
}

fn report(
    kind: ReferencedKind,
    name: Option<&String>,
    found: &mut dyn FnMut(ReferencedKind, &str),
) {
    if let Some(name) = name.filter(|name| !name.is_empty()) {
        found(kind, name);
    }
}

#[cfg(test)]
mod tests;
