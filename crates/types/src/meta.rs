//! Object metadata, and how absent and `null` fields are decoded.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::text_enum::text_enum;

/// The header that says whether a client wants `metadata.managedFields`. Other servers than Kennel ignore it.
pub const MANAGED_FIELDS_HEADER: &str = "kennel-managed-fields";

/// The value of [`MANAGED_FIELDS_HEADER`] of a client that does not.
pub const OMIT_MANAGED_FIELDS: &str = "omit";

/// Decodes `null` like an absent field.
pub fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// Implements `Deserialize` by `From<&str>`, without allocating.
macro_rules! deserialize_from_str {
    ($($type:ty),*) => {$(
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;
                impl serde::de::Visitor<'_> for Text {
                    type Value = $type;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("a string")
                    }

                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$type, E> {
                        Ok(<$type>::from(text))
                    }
                }
                deserializer.deserialize_str(Text)
            }
        }
    )*};
}
pub(crate) use deserialize_from_str;

/// Identifies an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    /// Empty for cluster-scoped objects.
    pub namespace: Arc<str>,
    pub name: Arc<str>,
    pub uid: Arc<str>,
}

impl Identity {
    pub fn new(namespace: &str, name: &str, uid: &str) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
            uid: uid.into(),
        }
    }

    pub fn of(metadata: &ObjectMeta) -> Self {
        Self::new(
            metadata.namespace.as_deref().unwrap_or_default(),
            metadata.name.as_deref().unwrap_or_default(),
            metadata.uid.as_deref().unwrap_or_default(),
        )
    }
}

/// `namespace/name`.
impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Namespaces: only metadata is read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Namespace {
    #[serde(deserialize_with = "metadata")]
    pub metadata: ObjectMeta,
}

text_enum! {
    pub enum NamespacePhase, else Active {
        /// Also when the status has no phase yet.
        #[default]
        Active = "Active",
        /// It is being deleted: nothing new is created in it.
        Terminating = "Terminating",
    }
}

/// Decodes metadata without managed fields and without annotations other than Kennel's own, which are most of its
/// bytes.
pub fn metadata<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct Metadata {
        name: Option<String>,
        namespace: Option<String>,
        uid: Option<String>,
        resource_version: Option<String>,
        generation: Option<i64>,
        creation_timestamp: Option<Time>,
        deletion_timestamp: Option<Time>,
        deletion_grace_period_seconds: Option<i64>,
        labels: Option<BTreeMap<String, String>>,
        #[serde(deserialize_with = "null_as_default")]
        annotations: OwnAnnotations,
        owner_references: Option<Vec<OwnerReference>>,
        finalizers: Option<Vec<String>>,
    }
    let read = Option::<Metadata>::deserialize(deserializer)?.unwrap_or_default();
    Ok(ObjectMeta {
        name: read.name,
        namespace: read.namespace,
        uid: read.uid,
        resource_version: read.resource_version,
        generation: read.generation,
        creation_timestamp: read.creation_timestamp,
        deletion_timestamp: read.deletion_timestamp,
        deletion_grace_period_seconds: read.deletion_grace_period_seconds,
        labels: read.labels,
        annotations: Some(read.annotations.0).filter(|own| !own.is_empty()),
        owner_references: read.owner_references,
        finalizers: read.finalizers,
        ..ObjectMeta::default()
    })
}

/// The annotations whose keys are Kennel's own; the others are skipped without allocating.
#[derive(Default)]
struct OwnAnnotations(BTreeMap<String, String>);

/// The domain of Kennel's own annotations.
const OWN_DOMAIN: &str = "kennel.dev/";

impl<'de> Deserialize<'de> for OwnAnnotations {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = OwnAnnotations;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("annotations")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<OwnAnnotations, A::Error> {
                let mut own = OwnAnnotations::default();
                while let Some(key) = map.next_key::<OwnKey>()? {
                    match key.0 {
                        Some(key) => drop(own.0.insert(key, map.next_value()?)),
                        None => drop(map.next_value::<IgnoredAny>()?),
                    }
                }
                Ok(own)
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

/// A key, if it is Kennel's own.
struct OwnKey(Option<String>);

impl From<&str> for OwnKey {
    fn from(key: &str) -> Self {
        Self(key.contains(OWN_DOMAIN).then(|| key.to_owned()))
    }
}

deserialize_from_str!(OwnKey);

/// Decodes only what identifies an object: leases are renewed a thousand times a second.
pub fn identity<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct Identity {
        name: Option<String>,
        namespace: Option<String>,
        uid: Option<String>,
        resource_version: Option<String>,
    }
    let read = Option::<Identity>::deserialize(deserializer)?.unwrap_or_default();
    Ok(ObjectMeta {
        name: read.name,
        namespace: read.namespace,
        uid: read.uid,
        resource_version: read.resource_version,
        ..ObjectMeta::default()
    })
}

/// The owner that manages the object, if it has one.
pub fn controller(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    let mut owners = metadata.owner_references.iter().flatten();
    owners.find(|owner| owner.controller == Some(true))
}
