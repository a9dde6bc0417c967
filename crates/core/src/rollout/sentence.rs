//! Sentences for people, by codes, so that a page can have them in another language. The terminal has them in English.

use std::fmt;

use serde::Serialize;
use serde::ser::{SerializeMap as _, SerializeStruct as _, Serializer};

/// Every sentence in English, by its code. `{name}` is a value.
pub const SENTENCES: [(&str, &str); 50] = [
    ("frozen", "frozen ({reason}): no pod is created or deleted"),
    (
        "commanded",
        "the controller is about to carry out the command {command}",
    ),
    ("policy-invalid", "no node changes its revision: {error}"),
    ("paused-by-hand", "paused by hand in its update ({reason})"),
    (
        "paused-by-hand-before",
        "paused by hand in front of its first stage ({reason})",
    ),
    (
        "paused-by-hand-in-stage",
        "paused by hand in {stage} ({reason})",
    ),
    ("complete-unstaged", "complete (no rollout policy)"),
    (
        "updating-unstaged",
        "{updated} of {desired} nodes have a pod of the present template, {available} have an available pod (no rollout policy)",
    ),
    (
        "not-observed",
        "no controller has seen the present template yet; is one running?",
    ),
    (
        "no-revision",
        "the controller is about to create the revision of the present template",
    ),
    (
        "about-to-start",
        "the rollout is about to start; only Kennel's controller carries out rollout policies",
    ),
    ("complete", "complete, {hash} is stable"),
    (
        "complete-but",
        "complete, {hash} is stable; {nodes} not healthy, which was accepted",
    ),
    (
        "updating-direct",
        "{healthy} of {total} nodes are healthy with {hash}, whose verdict is stable: it needs no stages",
    ),
    ("paused", "failed and paused in {stage}{why}"),
    ("awaits-promotion", "{stage} waits for a person{why}"),
    ("updating", "{stage}, {healthy} of {admitted} nodes healthy"),
    (
        "updating-waits",
        "{stage}, {healthy} of {admitted} nodes healthy; waits: maxUnavailable is {limit} and {pods} not available",
    ),
    (
        "baking",
        "{stage} bakes, {healthy} of {admitted} nodes healthy",
    ),
    (
        "rolling-back",
        "{hash} has failed{why}; {nodes} still to go back to {stable}",
    ),
    (
        "held",
        "{hash} has failed and is held{why}; the nodes run {stable}",
    ),
    // What commands have done.
    (
        "did-pause",
        "paused: no node changes its revision; missing pods are still replaced",
    ),
    (
        "did-freeze",
        "frozen: no pod is created or deleted, not even a missing one",
    ),
    ("did-resume", "resumed"),
    (
        "did-promote-full",
        "promoted: all nodes get {hash}, without further stages, bakes and checks",
    ),
    ("did-end-bake", "promoted: the bake of stage {n} ends now"),
    (
        "did-accept",
        "promoted: the failures of stage {n} are accepted, and {hash} goes on",
    ),
    ("did-promote", "promoted: {hash} goes on after stage {n}"),
    (
        "did-stop",
        "aborted: no further node gets {hash}; to go back, apply the template before it",
    ),
    (
        "did-abort",
        "aborted: {hash} has failed, and all nodes go back to {stable}",
    ),
    (
        "did-abort-without-stable",
        "aborted: {hash} stays where it is, as there is no revision to go back to",
    ),
    (
        "did-retry",
        "retried: attempt {n} of {hash} starts with stage one",
    ),
    // What they will do.
    (
        "pause",
        "no node changes its revision; missing pods are still replaced",
    ),
    ("resume", "pause and freeze end, and the rollout goes on"),
    (
        "promote-full",
        "all nodes get {hash}, without further stages, bakes and checks",
    ),
    ("end-bake", "the bake of stage {n} ends now"),
    (
        "accept",
        "the failures of stage {n} are accepted, and {hash} goes on",
    ),
    ("promote", "{hash} goes on after stage {n}"),
    (
        "stop",
        "no further node gets {hash}; to go back, apply the template before it",
    ),
    (
        "abort",
        "{hash} has failed, and all nodes go back to {stable}",
    ),
    (
        "abort-without-stable",
        "{hash} stays where it is, as there is no revision to go back to",
    ),
    ("retry", "attempt {n} of {hash} starts with stage one"),
    (
        "undo",
        "the template becomes that of revision {n} ({hash}) again; a GitOps tool may write its own back",
    ),
    // What a person could type.
    ("next-resume", "go on"),
    ("next-end-bake", "end the bake now"),
    ("next-promote", "go on with the next stage"),
    ("next-accept", "accept the failures and go on"),
    ("next-stop", "stop it; nodes keep what they have"),
    ("next-abort", "fail it and go back to {stable}"),
    ("next-retry", "try it again, from stage one"),
];

/// Before the codes of what commands have done.
const DID: &str = "did-";

/// See the [module](self). Its text is English.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sentence {
    code: &'static str,
    values: Vec<(&'static str, String)>,
}

impl Sentence {
    /// A code of [`SENTENCES`].
    pub fn new(code: &'static str) -> Self {
        debug_assert!(template(code).is_some(), "there is no sentence {code}");
        let values = Vec::new();
        Self { code, values }
    }

    #[must_use]
    pub fn with(mut self, name: &'static str, value: &dyn fmt::Display) -> Self {
        self.values.push((name, value.to_string()));
        self
    }

    pub fn code(&self) -> &'static str {
        self.code
    }

    /// Of what a command has done: what it will do.
    #[must_use]
    pub fn ahead(&self) -> Self {
        Self {
            code: self.code.strip_prefix(DID).unwrap_or(self.code),
            values: self.values.clone(),
        }
    }
}

fn template(code: &str) -> Option<&'static str> {
    let mut all = SENTENCES.iter();
    all.find(|(known, _)| *known == code).map(|(_, text)| *text)
}

impl fmt::Display for Sentence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = template(self.code).unwrap_or_default();
        while let Some((before, after)) = rest.split_once('{') {
            f.write_str(before)?;
            let (name, after) = after.split_once('}').unwrap_or((after, ""));
            let mut values = self.values.iter();
            if let Some((_, value)) = values.find(|(known, _)| *known == name) {
                f.write_str(value)?;
            }
            rest = after;
        }
        f.write_str(rest)
    }
}

/// `{"code": "held", "values": {"hash": "5d8b"}}`.
impl Serialize for Sentence {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Values<'a>(&'a [(&'static str, String)]);
        impl Serialize for Values<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(Some(self.0.len()))?;
                for (name, value) in self.0 {
                    map.serialize_entry(name, value)?;
                }
                map.end()
            }
        }
        let mut sentence = serializer.serialize_struct("Sentence", 2)?;
        sentence.serialize_field("code", self.code)?;
        sentence.serialize_field("values", &Values(&self.values))?;
        sentence.end()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_filled_in_as_they_are() {
        let sentence = Sentence::new("held")
            .with("hash", &"{stable}")
            .with("why", &" ({x})")
            .with("stable", &"5d8b");
        let text = "{stable} has failed and is held ({x}); the nodes run 5d8b";
        assert_eq!(sentence.to_string(), text);
        assert_eq!(
            serde_json::to_value(&sentence).unwrap(),
            json!({"code": "held", "values": {"hash": "{stable}", "why": " ({x})", "stable": "5d8b"}})
        );
    }

    #[test]
    fn codes_are_unique_and_what_commands_did_is_what_they_will_do() {
        let codes: BTreeSet<&str> = SENTENCES.iter().map(|(code, _)| *code).collect();
        assert_eq!(codes.len(), SENTENCES.len());
        // Nobody freezes from the page.
        for (code, text) in SENTENCES.iter().filter(|(code, _)| *code != "did-freeze") {
            if let Some(ahead) = code.strip_prefix(DID) {
                let rest = text.split_once(": ").map(|(_, rest)| rest);
                assert!(rest.is_none() || rest == template(ahead), "{code}");
                assert!(template(ahead).is_some(), "{code}");
            }
        }
    }
}
