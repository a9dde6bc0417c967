//! What a bootstrap token may be used for: to make a new node, or to replace the one that it names, a limited number of
//! times.
//!
//! The limits are further keys of the token's Secret. A token without them, such as kubeadm's, makes any number of new
//! nodes.

use std::collections::BTreeMap;

use kennel_types::Timestamp;

use super::claim::Standing;
use super::short_hash;

/// The prefix of the user names of tokens; the token's id follows.
pub const TOKEN_USER: &str = "system:bootstrap:";
/// The namespace of tokens.
pub const NAMESPACE: &str = "kube-system";

/// The keys of a token's Secret.
pub mod keys {
    /// How many nodes the token may make; absent: any number.
    pub const USES: &str = "uses";
    /// The nodes that it has made, each with the id of its key and the time in seconds since the epoch:
    /// `web-1=3f5a…@1790000000,web-2=…`.
    pub const USED_BY: &str = "used-by";
    /// The only node that it may make; absent: any.
    pub const NODE: &str = "node";
    /// `true`: that node may exist already.
    pub const REPLACE: &str = "replace";
}

/// Bytes of the hash that identifies a key.
const KEY_ID_BYTES: usize = 8;

/// Identifies a public key in a token's Secret.
pub fn key_id(public_key: &[u8]) -> String {
    short_hash(public_key, KEY_ID_BYTES)
}

/// A use of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Use {
    /// The id of the machine's key.
    key: String,
    /// Earlier versions recorded none: the epoch.
    at: Timestamp,
}

/// What a token may be used for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenLimits {
    uses: Option<u32>,
    /// By node.
    used_by: BTreeMap<String, Use>,
    node: Option<String>,
    replace: bool,
}

/// A request for the certificate of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Joining<'a> {
    pub node: &'a str,
    /// Identifies the key of the request.
    pub key: &'a str,
    /// Whether the Node exists.
    pub exists: bool,
    /// The time before which certificates of the node are revoked.
    pub revoked: Option<Timestamp>,
    /// What another machine's claim on the name means to this one.
    pub claim: Standing,
}

/// What to do with the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Approve it. Before that, in this order, so that it can be repeated after any failure: if it `revokes`, revoke the
    /// certificates of the node until now; record the claim; if it `counts`, record the use in the token's Secret.
    Approve { revokes: bool, counts: bool },
    /// For this reason.
    Deny(String),
}

impl TokenLimits {
    /// Reads the limits; `get` returns the value of a key. A number that cannot be read allows nothing.
    pub fn read(get: impl Fn(&str) -> Option<String>) -> Self {
        let filled = |key: &str| get(key).filter(|text| !text.is_empty());
        let used_by = filled(keys::USED_BY).unwrap_or_default();
        let entries = used_by.split(',').filter_map(|entry| entry.split_once('='));
        Self {
            uses: filled(keys::USES).map(|text| text.parse().unwrap_or(0)),
            used_by: entries
                .map(|(node, entry)| (node.to_owned(), Use::parse(entry)))
                .collect(),
            node: filled(keys::NODE),
            replace: filled(keys::REPLACE).as_deref() == Some("true"),
        }
    }

    /// The nodes that the token has made.
    pub fn nodes(&self) -> impl Iterator<Item = &str> {
        self.used_by.keys().map(String::as_str)
    }

    /// How often the token may still be used; none if that is not limited.
    pub fn uses_left(&self) -> Option<u32> {
        let used = u32::try_from(self.used_by.len()).unwrap_or(u32::MAX);
        self.uses.map(|uses| uses.saturating_sub(used))
    }

    pub fn verdict(&self, joining: Joining<'_>) -> Verdict {
        let Joining {
            node,
            key,
            exists,
            revoked,
            claim,
        } = joining;
        if let Some(only) = self.node.as_deref().filter(|only| *only != node) {
            return Verdict::Deny(format!("the token is for node {only} only"));
        }
        let replaces = self.replace && self.node.is_some();
        if exists && !replaces {
            return Verdict::Deny(format!(
                "node {node} exists, and a token makes new nodes only: choose another name with --node-name, or create a \
                 token that replaces it with `kennel token create --node {node} --replace`"
            ));
        }
        let asks_again = match self.used_by.get(node) {
            Some(used) if used.key != key => {
                return Verdict::Deny(format!(
                    "the token has been used for node {node} by another machine: create another with `kennel token create`"
                ));
            }
            Some(used) if revoked.is_some_and(|before| used.at < before) => {
                return Verdict::Deny(format!(
                    "the token has been used for node {node}, whose certificates were revoked since: create another with \
                     `kennel token create`"
                ));
            }
            // The machine asks again, for it has not received its certificate.
            Some(_) => true,
            None => false,
        };
        if !asks_again && self.uses_left() == Some(0) {
            return Verdict::Deny(self.spent());
        }
        if claim == Standing::Taken && !replaces {
            return Verdict::Deny(taken(node));
        }
        let revokes = match claim {
            Standing::Free | Standing::Own => exists && !asks_again,
            Standing::Taken | Standing::Abandoned => true,
        };
        // What is not limited need not be counted.
        let counts = (self.uses.is_some() || replaces) && (revokes || !asks_again);
        Verdict::Approve { revokes, counts }
    }

    fn spent(&self) -> String {
        let times = if self.uses == Some(1) {
            "once"
        } else {
            "as often as it may be"
        };
        format!(
            "the token has been used {times}: create another with `kennel token create`; --uses allows several machines"
        )
    }

    /// The value of [`keys::USED_BY`] with a use at this time. That must not be before the node's revocation, or the
    /// machine could not ask again.
    pub fn used_by_with(&self, node: &str, key: &str, at: Timestamp) -> String {
        let mut all = self.used_by.clone();
        let key = key.to_owned();
        all.insert(node.to_owned(), Use { key, at });
        let entries: Vec<String> = all
            .iter()
            .map(|(node, Use { key, at })| format!("{node}={key}@{}", at.as_secs()))
            .collect();
        entries.join(",")
    }
}

impl Use {
    fn parse(entry: &str) -> Self {
        let (key, at) = entry.split_once('@').unwrap_or((entry, ""));
        Self {
            key: key.to_owned(),
            at: Timestamp::from_secs(at.parse().unwrap_or(0)),
        }
    }
}

/// Why no other machine gets the name of a node now.
pub fn taken(node: &str) -> String {
    format!(
        "another machine has just got the certificate of node {node}, and has an hour to register: choose another name with \
         --node-name, or create a token that replaces it with `kennel token create --node {node} --replace`"
    )
}

#[cfg(test)]
mod tests;
