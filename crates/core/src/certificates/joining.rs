//! What a bootstrap token may be used for: to make a new node, or to replace the one that it names, a limited number of
//! times.
//!
//! The limits are further keys of the token's Secret. A token without them, such as kubeadm's, makes any number of new
//! nodes.

use std::collections::BTreeMap;

use super::short_hash;

/// The prefix of the user names of tokens; the token's id follows.
pub const TOKEN_USER: &str = "system:bootstrap:";
/// The namespace of tokens.
pub const NAMESPACE: &str = "kube-system";

/// The keys of a token's Secret.
pub mod keys {
    /// How many nodes the token may make; absent: any number.
    pub const USES: &str = "uses";
    /// The nodes that it has made, each with the id of its key: `web-1=3f5a…,web-2=…`.
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

/// What a token may be used for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenLimits {
    uses: Option<u32>,
    /// Key ids by node.
    used_by: BTreeMap<String, String>,
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
}

/// What to do with the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Approve it, and record this in the token's Secret before, if there is something to record. `replaces`: the
    /// certificates of the node until now must be revoked first.
    Approve {
        used_by: Option<String>,
        replaces: bool,
    },
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
                .map(|(node, key)| (node.to_owned(), key.to_owned()))
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
        let Joining { node, key, exists } = joining;
        if let Some(only) = self.node.as_deref().filter(|only| *only != node) {
            return Verdict::Deny(format!("the token is for node {only} only"));
        }
        // The machine asks again, for it has not received its certificate.
        if self.used_by.get(node).is_some_and(|own| own == key) {
            return Verdict::Approve {
                used_by: None,
                replaces: false,
            };
        }
        let replaces = self.replace && self.node.is_some();
        if exists && !replaces {
            return Verdict::Deny(format!(
                "node {node} exists, and a token makes new nodes only: choose another name with --node-name, or create a \
                 token that replaces it with `kennel token create --node {node} --replace`"
            ));
        }
        if self.used_by.contains_key(node) {
            return Verdict::Deny(format!(
                "the token has been used for node {node} by another machine: create another with `kennel token create`"
            ));
        }
        if self.uses_left() == Some(0) {
            let uses = self.uses.unwrap_or_default();
            let times = if uses == 1 {
                "once"
            } else {
                "as often as it may be"
            };
            return Verdict::Deny(format!(
                "the token has been used {times}: create another with `kennel token create`; --uses allows several machines"
            ));
        }
        Verdict::Approve {
            // What is not limited need not be counted.
            used_by: (self.uses.is_some() || replaces).then(|| self.used_by_with(node, key)),
            replaces: replaces && exists,
        }
    }

    fn used_by_with(&self, node: &str, key: &str) -> String {
        let mut all = self.used_by.clone();
        all.insert(node.to_owned(), key.to_owned());
        let entries: Vec<String> = all
            .iter()
            .map(|(node, key)| format!("{node}={key}"))
            .collect();
        entries.join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(entries: &[(&str, &str)]) -> TokenLimits {
        TokenLimits::read(|key| {
            let mut entries = entries.iter();
            let found = entries.find(|(own, _)| *own == key);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[track_caller]
    fn check(
        entries: &[(&str, &str)],
        node: &str,
        exists: bool,
        expected: Result<Option<&str>, &str>,
    ) {
        let key = "k";
        match (
            limits(entries).verdict(Joining { node, key, exists }),
            expected,
        ) {
            (Verdict::Approve { used_by, .. }, Ok(expected)) => {
                assert_eq!(used_by.as_deref(), expected);
            }
            (Verdict::Deny(why), Err(words)) => assert!(why.contains(words), "{why}"),
            (verdict, expected) => panic!("{verdict:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn a_token_makes_new_nodes_only() {
        check(&[], "n1", false, Ok(None));
        check(&[], "n1", true, Err("node n1 exists"));
        check(&[("uses", "5")], "n1", true, Err("node n1 exists"));
        // Naming a node alone does not allow to replace it, nor does the right to replace without a name.
        check(&[("node", "n1")], "n1", true, Err("node n1 exists"));
        check(&[("replace", "true")], "n1", true, Err("node n1 exists"));
    }

    #[test]
    fn uses_are_counted_by_node_and_key() {
        let once = ("uses", "1");
        check(&[once], "n1", false, Ok(Some("n1=k")));
        check(&[once, ("used-by", "n2=x")], "n1", false, Err("used once"));
        // The same machine asks again, before and after it has registered.
        check(&[once, ("used-by", "n1=k")], "n1", false, Ok(None));
        check(&[once, ("used-by", "n1=k")], "n1", true, Ok(None));
        check(
            &[once, ("used-by", "n1=x")],
            "n1",
            false,
            Err("another machine"),
        );
        check(
            &[("uses", "2"), ("used-by", "n2=x")],
            "n1",
            false,
            Ok(Some("n1=k,n2=x")),
        );
        check(&[("uses", "many")], "n1", false, Err("as often as"));
        assert_eq!(
            limits(&[("uses", "3"), ("used-by", "a=1,b=2")]).uses_left(),
            Some(1)
        );
        assert_eq!(limits(&[]).uses_left(), None);
    }

    #[test]
    fn a_token_that_replaces_a_node_is_for_that_node() {
        let token = [("node", "n1"), ("replace", "true"), ("uses", "1")];
        check(&token, "n2", false, Err("for node n1 only"));
        for exists in [true, false] {
            let verdict = limits(&token).verdict(Joining {
                node: "n1",
                key: "k",
                exists,
            });
            let used_by = Some("n1=k".to_owned());
            assert_eq!(
                verdict,
                Verdict::Approve {
                    used_by,
                    replaces: exists
                }
            );
        }
    }
}
