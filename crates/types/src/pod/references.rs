//! The objects that a pod references and that its node must read to run it.
//!
//! [`PodReferences`] borrows its strings: the node authoriser decodes every pod when it is bound and
//! when it is deleted.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;

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
pub struct PodReferences<'a> {
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
    env: Option<Vec<EnvVar<'a>>>,
    #[serde(borrow)]
    env_from: Option<Vec<EnvSource<'a>>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct EnvVar<'a> {
    #[serde(borrow)]
    value_from: Option<EnvSource<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct EnvSource<'a> {
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
    secret: Option<VolumeSource<'a>>,
    #[serde(borrow)]
    projected: Option<Projected<'a>>,
    #[serde(borrow)]
    persistent_volume_claim: Option<Claim<'a>>,
    ephemeral: Option<IgnoredAny>,
    #[serde(borrow)]
    azure_file: Option<VolumeSource<'a>>,
    #[serde(borrow)]
    cephfs: Option<VolumeSource<'a>>,
    #[serde(borrow)]
    cinder: Option<VolumeSource<'a>>,
    #[serde(borrow)]
    csi: Option<VolumeSource<'a>>,
    #[serde(borrow, rename = "flexVolume")]
    flex: Option<VolumeSource<'a>>,
    #[serde(borrow)]
    iscsi: Option<VolumeSource<'a>>,
    #[serde(borrow)]
    rbd: Option<VolumeSource<'a>>,
    #[serde(borrow, rename = "scaleIO")]
    scale_io: Option<VolumeSource<'a>>,
    #[serde(borrow)]
    storageos: Option<VolumeSource<'a>>,
}

/// A volume source that may reference a secret; the field differs by type.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct VolumeSource<'a> {
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

impl<'a> PodReferences<'a> {
    /// Bytes that are not a pod have no references.
    pub fn from_slice(bytes: &'a [u8]) -> Self {
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
        report(
            ReferencedKind::ServiceAccount,
            spec.service_account_name.as_ref(),
            found,
        );
        for secret in spec.image_pull_secrets.iter().flatten() {
            report(ReferencedKind::Secret, secret.name.as_ref(), found);
        }
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

impl Container<'_> {
    fn for_each(&self, found: &mut dyn FnMut(ReferencedKind, &str)) {
        let values = self.env.iter().flatten();
        let values = values.filter_map(|variable| variable.value_from.as_ref());
        for source in values.chain(self.env_from.iter().flatten()) {
            report_reference(ReferencedKind::ConfigMap, source.map_key.as_ref(), found);
            report_reference(ReferencedKind::ConfigMap, source.map.as_ref(), found);
            report_reference(ReferencedKind::Secret, source.secret_key.as_ref(), found);
            report_reference(ReferencedKind::Secret, source.secret.as_ref(), found);
        }
    }
}

impl Volume<'_> {
    fn for_each(&self, pod: &str, found: &mut dyn FnMut(ReferencedKind, &str)) {
        report_reference(ReferencedKind::ConfigMap, self.config_map.as_ref(), found);
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
            report(ReferencedKind::Secret, source.secret_name.as_ref(), found);
            report_reference(ReferencedKind::Secret, source.secret_ref.as_ref(), found);
            report_reference(
                ReferencedKind::Secret,
                source.node_publish_secret_ref.as_ref(),
                found,
            );
        }
        let projections = self.projected.iter().filter_map(|p| p.sources.as_ref());
        for projection in projections.flatten() {
            report_reference(
                ReferencedKind::ConfigMap,
                projection.config_map.as_ref(),
                found,
            );
            report_reference(ReferencedKind::Secret, projection.secret.as_ref(), found);
        }
        if let Some(claim) = &self.persistent_volume_claim {
            report(
                ReferencedKind::PersistentVolumeClaim,
                claim.claim_name.as_ref(),
                found,
            );
        } else if let (Some(_), Some(name)) = (&self.ephemeral, &self.name) {
            // The name of the claim that is created for an ephemeral volume.
            found(
                ReferencedKind::PersistentVolumeClaim,
                &format!("{pod}-{name}"),
            );
        }
    }
}

fn report_reference(
    kind: ReferencedKind,
    reference: Option<&Reference<'_>>,
    found: &mut dyn FnMut(ReferencedKind, &str),
) {
    if let Some(reference) = reference {
        report(kind, reference.name.as_ref(), found);
    }
}

fn report(
    kind: ReferencedKind,
    name: Option<&Cow<'_, str>>,
    found: &mut dyn FnMut(ReferencedKind, &str),
) {
    if let Some(name) = name.filter(|name| !name.is_empty()) {
        found(kind, name);
    }
}

#[cfg(test)]
mod tests;
