//! `CertificateSigningRequest`s: which requests a signer signs, which are approved automatically, how long a
//! certificate is valid, and when a request is deleted.
//!
//! Callers parse the certificates.

pub mod claim;
pub mod expiry;
pub mod joining;
pub mod lifetime;
pub mod revocation;
pub mod serving;

use std::net::IpAddr;

use sha2::{Digest as _, Sha256};

/// The prefix of the user names of nodes.
pub const NODE_USER: &str = "system:node:";
pub const NODES: &str = "system:nodes";
const MASTERS: &str = "system:masters";

const DNS_NAMES: &str = "DNS subjectAltNames are not allowed";
const EMAILS: &str = "Email subjectAltNames are not allowed";
const ADDRESSES: &str = "IP subjectAltNames are not allowed";
const URIS: &str = "URI subjectAltNames are not allowed";

const CLIENT_AUTH: &str = "client auth";
const SERVER_AUTH: &str = "server auth";
const DIGITAL_SIGNATURE: &str = "digital signature";
const KEY_ENCIPHERMENT: &str = "key encipherment";

/// The signers that this controller implements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signer {
    Client,
    KubeletClient,
    KubeletServing,
}

impl Signer {
    /// None for other signers.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "kubernetes.io/kube-apiserver-client" => Some(Self::Client),
            "kubernetes.io/kube-apiserver-client-kubelet" => Some(Self::KubeletClient),
            "kubernetes.io/kubelet-serving" => Some(Self::KubeletServing),
            _ => None,
        }
    }
}

/// The content of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateRequest {
    /// The requester.
    pub username: String,
    pub usages: Vec<String>,
    /// Of the subject; empty if it has none.
    pub common_name: String,
    /// Of the subject.
    pub organisations: Vec<String>,
    /// The subject has other attributes.
    pub more_in_subject: bool,
    pub dns_names: Vec<String>,
    pub addresses: Vec<IpAddr>,
    pub emails: Vec<String>,
    pub uris: Vec<String>,
}

/// An RBAC permission that lets a request of a node be approved automatically.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permission {
    /// The requester must be allowed to create this subresource of certificate requests.
    pub subresource: &'static str,
    /// Of the approval.
    pub message: &'static str,
}

const SELF_NODE_CLIENT: Permission = Permission {
    subresource: "selfnodeclient",
    message: "Auto approving self kubelet client certificate after SubjectAccessReview.",
};
const NODE_CLIENT: Permission = Permission {
    subresource: "nodeclient",
    message: "Auto approving kubelet client certificate after SubjectAccessReview.",
};

impl CertificateRequest {
    /// Any one of these permissions is enough to approve this request for a node's client certificate. Empty if it
    /// is another kind of request.
    pub fn permissions(&self) -> &'static [Permission] {
        if self.rejection(Signer::KubeletClient).is_some() {
            &[]
        } else if self.username == self.common_name {
            &[SELF_NODE_CLIENT, NODE_CLIENT]
        } else {
            &[NODE_CLIENT]
        }
    }

    /// Why a signer rejects an approved request.
    pub fn rejection(&self, signer: Signer) -> Option<String> {
        match signer {
            Signer::Client => self.client_rejection(),
            Signer::KubeletClient => self.kubelet_client_rejection(),
            Signer::KubeletServing => self.kubelet_serving_rejection(),
        }
    }

    fn client_rejection(&self) -> Option<String> {
        let optional = [DIGITAL_SIGNATURE, KEY_ENCIPHERMENT, CLIENT_AUTH];
        let mut usages = self.usages.iter();
        if let Some(usage) = usages.find(|usage| !optional.contains(&usage.as_str())) {
            return Some(format!("invalid usage for client certificate: {usage}"));
        }
        if !self.usages.iter().any(|usage| usage == CLIENT_AUTH) {
            let words = "missing required usage for client certificate";
            return Some(format!("{words}: {CLIENT_AUTH}"));
        }
        let is_master = self.organisations.iter().any(|group| group == MASTERS);
        is_master.then(|| format!("subject organization may not be {MASTERS}"))
    }

    fn kubelet_client_rejection(&self) -> Option<String> {
        let rejections = [
            self.organisation_rejection(),
            reject_if(!self.dns_names.is_empty(), DNS_NAMES),
            reject_if(!self.emails.is_empty(), EMAILS),
            reject_if(!self.addresses.is_empty(), ADDRESSES),
            reject_if(!self.uris.is_empty(), URIS),
            self.name_rejection(),
            self.usage_rejection([CLIENT_AUTH, DIGITAL_SIGNATURE, KEY_ENCIPHERMENT]),
        ];
        rejections.into_iter().flatten().next()
    }

    fn kubelet_serving_rejection(&self) -> Option<String> {
        let no_names = self.dns_names.is_empty() && self.addresses.is_empty();
        let rejections = [
            self.organisation_rejection(),
            reject_if(no_names, "DNS or IP subjectAltName is required"),
            reject_if(!self.emails.is_empty(), EMAILS),
            reject_if(!self.uris.is_empty(), URIS),
            self.usage_rejection([DIGITAL_SIGNATURE, KEY_ENCIPHERMENT, SERVER_AUTH]),
            self.name_rejection(),
        ];
        rejections.into_iter().flatten().next()
    }

    fn organisation_rejection(&self) -> Option<String> {
        let words = "subject organization is not system:nodes";
        reject_if(self.organisations != [NODES], words)
    }

    fn name_rejection(&self) -> Option<String> {
        let prefix = "subject common name does not begin with system:node:";
        let more = "subject may have an organization and a common name only";
        let node = self.common_name.strip_prefix(NODE_USER);
        reject_if(node.is_none_or(str::is_empty), prefix)
            .or_else(|| reject_if(self.more_in_subject, more))
    }

    /// Requires exactly these usages, except that key encipherment, which only RSA keys need, is optional.
    fn usage_rejection(&self, expected: [&str; 3]) -> Option<String> {
        let all_expected = self.usages.iter().all(|usage| expected.contains(&&**usage));
        let required = expected.iter().filter(|usage| **usage != KEY_ENCIPHERMENT);
        let has = |usage: &&str| self.usages.iter().any(|own| own == usage);
        let matches = all_expected && required.into_iter().all(has);
        reject_if(
            !matches,
            &format!("usages did not match [{}]", expected.join(" ")),
        )
    }
}

/// The first bytes of a SHA-256 hash, in hexadecimal.
fn short_hash(bytes: &[u8], length: usize) -> String {
    let digest = Sha256::digest(bytes);
    let digits = digest.iter().take(length);
    let digits = digits.flat_map(|byte| [byte >> 4, byte & 15]);
    digits
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}

fn reject_if(wrong: bool, message: &str) -> Option<String> {
    wrong.then(|| message.to_owned())
}

#[cfg(test)]
mod tests;
