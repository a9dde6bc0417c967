//! Requests for certificates: which of them a signer signs, which are approved without anybody being asked,
//! for how long a certificate lives, and when a request goes.
//!
//! Nothing here reads certificates: who calls has taken apart what was asked.

pub mod age;
pub mod serving;

use std::net::IpAddr;

/// The prefix of nodes' names as users.
pub const NODE_USER: &str = "system:node:";
/// The group that nodes belong to.
pub const NODES: &str = "system:nodes";
/// The group that may do everything.
const MASTERS: &str = "system:masters";

const DNS_NAMES: &str = "DNS subjectAltNames are not allowed";
const EMAILS: &str = "Email subjectAltNames are not allowed";
const ADDRESSES: &str = "IP subjectAltNames are not allowed";
const URIS: &str = "URI subjectAltNames are not allowed";

const CLIENT_AUTH: &str = "client auth";
const SERVER_AUTH: &str = "server auth";
const DIGITAL_SIGNATURE: &str = "digital signature";
const KEY_ENCIPHERMENT: &str = "key encipherment";

/// The signers that are ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signer {
    /// Certificates that users show to the API.
    Client,
    /// Those that nodes show to it.
    KubeletClient,
    /// Those that nodes show to whoever asks them.
    KubeletServing,
}

impl Signer {
    /// By its name; none if it is somebody else's.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "kubernetes.io/kube-apiserver-client" => Some(Self::Client),
            "kubernetes.io/kube-apiserver-client-kubelet" => Some(Self::KubeletClient),
            "kubernetes.io/kubelet-serving" => Some(Self::KubeletServing),
            _ => None,
        }
    }
}

/// What somebody asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Who asks.
    pub username: String,
    /// What the certificate is to be good for.
    pub usages: Vec<String>,
    /// The subject's common name; empty if it has none.
    pub common_name: String,
    /// The subject's organisations.
    pub organisations: Vec<String>,
    /// The subject has more to it than these.
    pub more_in_subject: bool,
    /// Names to serve under.
    pub dns_names: Vec<String>,
    /// Addresses to serve at.
    pub addresses: Vec<IpAddr>,
    /// E-mail addresses.
    pub emails: Vec<String>,
    /// URIs.
    pub uris: Vec<String>,
}

/// A right that lets a request of a node be approved unasked, and the words for it then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permission {
    /// The subresource of certificate requests that whoever asks must be allowed to create.
    pub subresource: &'static str,
    /// What the approval says.
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

impl Asked {
    /// The rights of which any one is enough to approve this request for a node's client certificate. None
    /// if it is not recognised as such.
    pub fn permissions(&self) -> &'static [Permission] {
        if self.refusal(Signer::KubeletClient).is_some() {
            &[]
        } else if self.username == self.common_name {
            &[SELF_NODE_CLIENT, NODE_CLIENT]
        } else {
            &[NODE_CLIENT]
        }
    }

    /// Why a signer does not sign this, though it was approved.
    pub fn refusal(&self, signer: Signer) -> Option<String> {
        match signer {
            Signer::Client => self.client_refusal(),
            Signer::KubeletClient => self.kubelet_client_refusal(),
            Signer::KubeletServing => self.kubelet_serving_refusal(),
        }
    }

    fn client_refusal(&self) -> Option<String> {
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

    fn kubelet_client_refusal(&self) -> Option<String> {
        let refusals = [
            self.organisation_refusal(),
            refuse(!self.dns_names.is_empty(), DNS_NAMES),
            refuse(!self.emails.is_empty(), EMAILS),
            refuse(!self.addresses.is_empty(), ADDRESSES),
            refuse(!self.uris.is_empty(), URIS),
            self.name_refusal(),
            self.usage_refusal([CLIENT_AUTH, DIGITAL_SIGNATURE, KEY_ENCIPHERMENT]),
        ];
        refusals.into_iter().flatten().next()
    }

    fn kubelet_serving_refusal(&self) -> Option<String> {
        let nameless = self.dns_names.is_empty() && self.addresses.is_empty();
        let refusals = [
            self.organisation_refusal(),
            refuse(nameless, "DNS or IP subjectAltName is required"),
            refuse(!self.emails.is_empty(), EMAILS),
            refuse(!self.uris.is_empty(), URIS),
            self.usage_refusal([DIGITAL_SIGNATURE, KEY_ENCIPHERMENT, SERVER_AUTH]),
            self.name_refusal(),
        ];
        refusals.into_iter().flatten().next()
    }

    fn organisation_refusal(&self) -> Option<String> {
        let words = "subject organization is not system:nodes";
        refuse(self.organisations != [NODES], words)
    }

    fn name_refusal(&self) -> Option<String> {
        let prefix = "subject common name does not begin with system:node:";
        let more = "subject may have an organization and a common name only";
        let node = self.common_name.strip_prefix(NODE_USER);
        refuse(node.is_none_or(str::is_empty), prefix)
            .or_else(|| refuse(self.more_in_subject, more))
    }

    /// All of these usages and no others, but for key encipherment, which only RSA keys need.
    fn usage_refusal(&self, wanted: [&str; 3]) -> Option<String> {
        let all_wanted = self.usages.iter().all(|usage| wanted.contains(&&**usage));
        let needed = wanted.iter().filter(|usage| **usage != KEY_ENCIPHERMENT);
        let has = |usage: &&str| self.usages.iter().any(|own| own == usage);
        let matches = all_wanted && needed.into_iter().all(has);
        refuse(
            !matches,
            &format!("usages did not match [{}]", wanted.join(" ")),
        )
    }
}

fn refuse(wrong: bool, words: &str) -> Option<String> {
    wrong.then(|| words.to_owned())
}

#[cfg(test)]
mod tests;
