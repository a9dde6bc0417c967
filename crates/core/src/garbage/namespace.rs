//! The deletion of a namespace: its conditions, and whether its finalizer may be removed.
//!
//! Pods are deleted first, so that what they use exists until they have terminated.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// The finalizer that is removed once the namespace is empty.
pub const FINALIZER: &str = "kubernetes";

/// The remaining objects of one resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remaining {
    /// Plural and group, such as `pods.` or `daemonsets.apps`.
    pub resource: String,
    pub count: usize,
    /// How many objects have each finalizer.
    pub finalizers: BTreeMap<String, usize>,
}

/// The result of an attempt to empty a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attempt {
    /// The error of a failed discovery.
    pub undiscovered: Option<String>,
    /// Errors of deletions and lists.
    pub failures: Vec<String>,
    pub remaining: Vec<Remaining>,
}

impl Attempt {
    /// Whether the namespace is known to be empty.
    pub fn is_empty(&self) -> bool {
        self.undiscovered.is_none() && self.failures.is_empty() && self.remaining.is_empty()
    }

    /// The conditions that follow: type, whether it is true, reason, message.
    fn conditions(&self) -> [(&'static str, bool, &'static str, String); 5] {
        let undiscovered = self.undiscovered.as_ref();
        let failed = (!self.failures.is_empty()).then(|| self.failed());
        [
            condition(
                "NamespaceDeletionDiscoveryFailure",
                undiscovered.map(|why| ("DiscoveryFailed", why.clone())),
                (
                    "ResourcesDiscovered",
                    "All resources successfully discovered",
                ),
            ),
            condition(
                "NamespaceDeletionGroupVersionParsingFailure",
                None,
                (
                    "ParsedGroupVersions",
                    "All legacy kube types successfully parsed",
                ),
            ),
            condition(
                "NamespaceDeletionContentFailure",
                failed.map(|why| ("ContentDeletionFailed", why)),
                (
                    "ContentDeleted",
                    "All content successfully deleted, may be waiting on finalization",
                ),
            ),
            condition(
                "NamespaceContentRemaining",
                self.rest().map(|what| ("SomeResourcesRemain", what)),
                ("ContentRemoved", "All content successfully removed"),
            ),
            condition(
                "NamespaceFinalizersRemaining",
                self.held().map(|what| ("SomeFinalizersRemain", what)),
                (
                    "ContentHasNoFinalizers",
                    "All content-preserving finalizers finished",
                ),
            ),
        ]
    }

    fn failed(&self) -> String {
        let (count, all) = (self.failures.len(), self.failures.join(", "));
        format!("Failed to delete all resource types, {count} remaining: {all}")
    }

    fn rest(&self) -> Option<String> {
        let of = |r: &Remaining| format!("{} has {} resource instances", r.resource, r.count);
        let mut rest: Vec<String> = self.remaining.iter().map(of).collect();
        rest.sort_unstable();
        let all = rest.join(", ");
        (!rest.is_empty()).then(|| format!("Some resources are remaining: {all}"))
    }

    fn held(&self) -> Option<String> {
        let mut by_finalizer: BTreeMap<&str, usize> = BTreeMap::new();
        for (finalizer, count) in self.remaining.iter().flat_map(|r| &r.finalizers) {
            *by_finalizer.entry(finalizer).or_default() += count;
        }
        let of = |(f, count): (&&str, &usize)| format!("{f} in {count} resource instances");
        let held: Vec<String> = by_finalizer.iter().map(of).collect();
        let all = held.join(", ");
        let words = "Some content in the namespace has finalizers remaining";
        (!held.is_empty()).then(|| format!("{words}: {all}"))
    }
}

fn condition(
    name: &'static str,
    bad: Option<(&'static str, String)>,
    (reason, message): (&'static str, &str),
) -> (&'static str, bool, &'static str, String) {
    match bad {
        Some((reason, message)) => (name, true, reason, message),
        None => (name, false, reason, message.to_owned()),
    }
}

/// The namespace with the conditions of an attempt; `None` if it has them already.
pub fn with_conditions(namespace: &Value, attempt: &Attempt, now: &str) -> Option<Value> {
    let mut changed = namespace.clone();
    let status = &mut changed["status"];
    let mut conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    for (name, is_true, reason, message) in attempt.conditions() {
        let status = if is_true { "True" } else { "False" };
        let wanted = json!({"type": name, "status": status, "reason": reason, "message": message});
        put(&mut conditions, wanted, now);
    }
    status["conditions"] = conditions.into();
    (changed != *namespace).then_some(changed)
}

fn put(conditions: &mut Vec<Value>, mut wanted: Value, now: &str) {
    let there = conditions.iter_mut().find(|c| c["type"] == wanted["type"]);
    let Some(there) = there else {
        wanted["lastTransitionTime"] = now.into();
        return conditions.push(wanted);
    };
    let since = if there["status"] == wanted["status"] {
        there["lastTransitionTime"].clone()
    } else {
        now.into()
    };
    wanted["lastTransitionTime"] = since;
    *there = wanted;
}

/// The namespace without its finalizer; `None` if it does not have it.
pub fn finalized(namespace: &Value) -> Option<Value> {
    let finalizers = namespace["spec"]["finalizers"].as_array()?;
    let left: Vec<Value> = finalizers
        .iter()
        .filter(|f| **f != FINALIZER)
        .cloned()
        .collect();
    (left.len() < finalizers.len()).then(|| {
        let mut changed = namespace.clone();
        changed["spec"]["finalizers"] = left.into();
        changed
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remaining(resource: &str, count: usize, finalizers: &[(&str, usize)]) -> Remaining {
        let finalizers = finalizers.iter().map(|(f, n)| ((*f).to_owned(), *n));
        Remaining {
            resource: resource.to_owned(),
            count,
            finalizers: finalizers.collect(),
        }
    }

    fn messages(attempt: &Attempt) -> Vec<String> {
        let conditions = attempt.conditions();
        let bad = conditions.into_iter().filter(|(_, is_true, _, _)| *is_true);
        bad.map(|(name, _, reason, message)| format!("{name} {reason}: {message}"))
            .collect()
    }

    #[test]
    fn what_remains_is_told_in_upstreams_words() {
        let attempt = Attempt {
            undiscovered: None,
            failures: vec!["no".to_owned(), "never".to_owned()],
            remaining: vec![
                remaining("secrets.", 1, &[("b", 1), ("a", 1)]),
                remaining("daemonsets.apps", 2, &[("a", 2)]),
            ],
        };
        let expected = [
            "NamespaceDeletionContentFailure ContentDeletionFailed: Failed to delete all resource \
             types, 2 remaining: no, never",
            "NamespaceContentRemaining SomeResourcesRemain: Some resources are remaining: \
             daemonsets.apps has 2 resource instances, secrets. has 1 resource instances",
            "NamespaceFinalizersRemaining SomeFinalizersRemain: Some content in the namespace has \
             finalizers remaining: a in 3 resource instances, b in 1 resource instances",
        ];
        assert_eq!(messages(&attempt), expected);
        assert!(!attempt.is_empty());
        let empty = Attempt::default();
        assert!(empty.is_empty() && messages(&empty).is_empty());
    }

    #[test]
    fn conditions_change_their_time_only_with_their_status() {
        let namespace = json!({"status": {"phase": "Terminating"}});
        let first = with_conditions(&namespace, &Attempt::default(), "t1").unwrap();
        assert_eq!(first["status"]["conditions"].as_array().unwrap().len(), 5);
        assert_eq!(with_conditions(&first, &Attempt::default(), "t2"), None);
        let some = |n| Attempt {
            remaining: vec![remaining("pods.", n, &[])],
            ..Attempt::default()
        };
        let second = with_conditions(&first, &some(2), "t2").unwrap();
        let third = with_conditions(&second, &some(1), "t3").unwrap();
        let remains = |object: &Value| object["status"]["conditions"][3].clone();
        assert_eq!(remains(&second)["lastTransitionTime"], "t2");
        assert_eq!(remains(&third)["lastTransitionTime"], "t2");
        let words = "Some resources are remaining: pods. has 1 resource instances";
        assert_eq!(remains(&third)["message"], words);
    }

    #[test]
    fn only_our_finalizer_is_taken() {
        let namespace = json!({"spec": {"finalizers": ["kubernetes", "example.com/x"]}});
        let left = finalized(&namespace).unwrap();
        assert_eq!(left["spec"]["finalizers"], json!(["example.com/x"]));
        assert_eq!(finalized(&left), None);
    }
}
