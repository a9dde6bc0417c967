//! The data of a ConfigMap or Secret.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::inputs) struct Contents {
    /// May become variables and files.
    pub(in crate::inputs) data: BTreeMap<String, Vec<u8>>,
    /// `binaryData` of a ConfigMap, which may only become files.
    pub(in crate::inputs) binary: BTreeMap<String, Vec<u8>>,
}

impl Contents {
    pub(in crate::inputs) fn file(&self, key: &str) -> Option<&Vec<u8>> {
        self.data.get(key).or_else(|| self.binary.get(key))
    }

    pub(in crate::inputs) fn files(&self) -> impl Iterator<Item = (&String, &Vec<u8>)> {
        self.data.iter().chain(&self.binary)
    }

    pub(in crate::inputs) fn variable(&self, key: &str) -> Option<String> {
        let value = self.data.get(key)?;
        Some(String::from_utf8_lossy(value).into_owned())
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ConfigMap {
    metadata: ObjectMeta,
    data: Option<BTreeMap<String, String>>,
    binary_data: Option<BTreeMap<String, ByteString>>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Secret {
    metadata: ObjectMeta,
    data: Option<BTreeMap<String, ByteString>>,
}

kennel_types::resource!(ConfigMap; NamespaceResourceScope, "", "ConfigMap", "configmaps");
kennel_types::resource!(Secret; NamespaceResourceScope, "", "Secret", "secrets");

impl From<ConfigMap> for Contents {
    fn from(object: ConfigMap) -> Self {
        let data = object.data.into_iter().flatten();
        Self {
            data: data.map(|(key, text)| (key, text.into_bytes())).collect(),
            binary: bytes(object.binary_data),
        }
    }
}

impl From<Secret> for Contents {
    fn from(object: Secret) -> Self {
        Self {
            data: bytes(object.data),
            binary: BTreeMap::new(),
        }
    }
}

fn bytes(data: Option<BTreeMap<String, ByteString>>) -> BTreeMap<String, Vec<u8>> {
    let data = data.into_iter().flatten();
    data.map(|(key, bytes)| (key, bytes.0)).collect()
}
