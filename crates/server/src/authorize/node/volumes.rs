//! Bound persistent volumes: their claims, and the secrets that nodes need to mount them.

use std::collections::BTreeMap;

use kennel_store::Record;
use serde_json::Value;

use crate::object::Head;
use crate::tree::{at, text};

/// Sources whose secret is named by `secretRef`.
const WITH_SECRET_REF: [&str; 7] = [
    "cephfs",
    "cinder",
    "flexVolume",
    "iscsi",
    "rbd",
    "scaleIO",
    "storageos",
];
/// The secrets of a CSI volume that nodes use, as opposed to its controller.
const CSI_SECRETS: [&str; 3] = [
    "nodeExpandSecretRef",
    "nodePublishSecretRef",
    "nodeStageSecretRef",
];

/// Namespace and name.
type ObjectName = (Box<str>, Box<str>);

struct Volume {
    claim: ObjectName,
    secrets: Vec<ObjectName>,
}

/// By name.
#[derive(Default)]
pub(super) struct Volumes(BTreeMap<Box<str>, Volume>);

impl Volumes {
    pub(super) fn apply(&mut self, before: Option<&Record<Head>>, after: Option<&Record<Head>>) {
        if let Some(volume) = before {
            self.0.remove(&volume.head.name);
        }
        let Some(record) = after else {
            return;
        };
        let tree: Value = serde_json::from_slice(&record.value).unwrap_or_default();
        if let Some(volume) = read(&tree) {
            self.0.insert(record.head.name.clone(), volume);
        }
    }

    /// Namespace and name of the claim that is bound to this volume.
    pub(super) fn claim(&self, volume: &str) -> Option<(&str, &str)> {
        let (namespace, name) = &self.0.get(volume)?.claim;
        Some((namespace, name))
    }

    /// The claims whose volumes need this secret. A linear search: volumes are few, and it runs only if no
    /// pod references the secret directly.
    pub(super) fn claims_with_secret<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        let is_it = move |(n, s): &ObjectName| **n == *namespace && **s == *name;
        let volumes = self.0.values();
        let using = volumes.filter(move |volume| volume.secrets.iter().any(is_it));
        using.map(|volume| (&*volume.claim.0, &*volume.claim.1))
    }
}

/// `None` if it is not bound.
fn read(tree: &Value) -> Option<Volume> {
    let spec = at(tree, "spec");
    let claim = (
        text(spec, "claimRef.namespace"),
        text(spec, "claimRef.name"),
    );
    if claim.1.is_empty() {
        return None;
    }
    let mut secrets = Vec::new();
    let mut add = |namespace: &str, name: &str| {
        // Defaults to the claim's namespace.
        let namespace = if namespace.is_empty() {
            claim.0
        } else {
            namespace
        };
        if !name.is_empty() {
            secrets.push((namespace.into(), name.into()));
        }
    };
    let azure = at(spec, "azureFile");
    add(text(azure, "secretNamespace"), text(azure, "secretName"));
    let named = WITH_SECRET_REF.map(|source| &spec[source]["secretRef"]);
    let csi = CSI_SECRETS.map(|field| &spec["csi"][field]);
    for reference in named.into_iter().chain(csi) {
        add(text(reference, "namespace"), text(reference, "name"));
    }
    Some(Volume {
        claim: (claim.0.into(), claim.1.into()),
        secrets,
    })
}
