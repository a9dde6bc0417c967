//! The content of a node's certificate request.

use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use data_encoding::HEXLOWER;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, PublicKeyData as _, SanType};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To authenticate at the API server.
    Client,
    /// For the node's own server.
    Serving,
}

impl Purpose {
    fn signer(self) -> &'static str {
        match self {
            Self::Client => "kubernetes.io/kube-apiserver-client-kubelet",
            Self::Serving => "kubernetes.io/kubelet-serving",
        }
    }

    fn usage(self) -> &'static str {
        match self {
            Self::Client => "client auth",
            Self::Serving => "server auth",
        }
    }

    /// As in names of files and requests.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Serving => "serving",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateRequest {
    pub purpose: Purpose,
    /// The node's name.
    pub node: String,
    /// Of a serving certificate, beside the node's name.
    pub addresses: Vec<IpAddr>,
}

impl CertificateRequest {
    pub fn client(node: &str) -> Self {
        Self {
            purpose: Purpose::Client,
            node: node.to_owned(),
            addresses: Vec::new(),
        }
    }

    pub fn serving(node: &str, addresses: Vec<IpAddr>) -> Self {
        Self {
            purpose: Purpose::Serving,
            node: node.to_owned(),
            addresses,
        }
    }

    /// The file with the key of the pending request.
    pub(super) fn pending_file(&self) -> &'static str {
        match (self.purpose, self.addresses.is_empty()) {
            (Purpose::Client, _) => "client.pending.key",
            (Purpose::Serving, false) => "serving.pending.key",
            (Purpose::Serving, true) => "serving-name.pending.key",
        }
    }

    /// The PKCS#10 request, signed with the key, as PEM.
    pub fn pem(&self, key: &KeyPair) -> Result<String, rcgen::Error> {
        let mut params = CertificateParams::default();
        let mut subject = DistinguishedName::new();
        subject.push(DnType::OrganizationName, "system:nodes");
        subject.push(DnType::CommonName, format!("system:node:{}", self.node));
        params.distinguished_name = subject;
        if self.purpose == Purpose::Serving {
            let name = self.node.as_str().try_into()?;
            let addresses = self.addresses.iter().copied().map(SanType::IpAddress);
            params.subject_alt_names = [SanType::DnsName(name)]
                .into_iter()
                .chain(addresses)
                .collect();
        }
        params.serialize_request(key)?.pem()
    }

    /// The name of the `CertificateSigningRequest`. The same request with the same key has the same name, so creating
    /// it is idempotent.
    pub(super) fn name(&self, key: &KeyPair) -> String {
        let mut digest = Sha256::new();
        digest.update(key.subject_public_key_info());
        digest.update(format!("{self:?}"));
        let hash = HEXLOWER.encode(&digest.finalize()[..12]);
        format!("node-{}-{hash}", self.purpose.as_str())
    }

    /// The `CertificateSigningRequest`.
    pub(super) fn object(&self, key: &KeyPair) -> Result<Value, rcgen::Error> {
        Ok(json!({
            "apiVersion": "certificates.k8s.io/v1",
            "kind": "CertificateSigningRequest",
            "metadata": {"name": self.name(key)},
            "spec": {
                "request": STANDARD.encode(self.pem(key)?),
                "signerName": self.purpose.signer(),
                "usages": ["digital signature", self.purpose.usage()],
            },
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_request_has_the_same_name() {
        let key = KeyPair::generate().unwrap();
        let other = KeyPair::generate().unwrap();
        let client = CertificateRequest::client("n1");
        let serving = CertificateRequest::serving("n1", vec![]);
        assert_eq!(client.name(&key), client.name(&key));
        assert_ne!(client.name(&key), client.name(&other));
        assert_ne!(
            client.name(&key),
            CertificateRequest::client("n2").name(&key)
        );
        assert_ne!(serving.name(&key), client.name(&key));
        let elsewhere = CertificateRequest::serving("n1", vec![[10, 0, 0, 1].into()]);
        assert_ne!(serving.name(&key), elsewhere.name(&key));
    }
}
