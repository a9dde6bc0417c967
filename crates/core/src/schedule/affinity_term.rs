//! Pod (anti-)affinity terms, parsed once and matched against classes of pods.
//!
//! `matchLabelKeys` is not read: the API server merges those keys into the selector when the pod is created.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::selector::Selector;

/// Labels of the known namespaces, by name.
pub(super) type Namespaces = BTreeMap<Arc<str>, BTreeMap<String, String>>;

/// A `PodAffinityTerm`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PodTerm {
    pub topology_key: Arc<str>,
    selector: Selector,
    namespaces: Vec<Box<str>>,
    namespace_selector: Option<Selector>,
}

impl PodTerm {
    /// Parses a term of a pod in the given namespace; `None` if it is invalid.
    pub fn parse(term: &Value, own_namespace: &str) -> Option<Self> {
        let key = term.get("topologyKey").and_then(Value::as_str)?;
        let selector = term.get("labelSelector").unwrap_or(&Value::Null);
        let names = term.get("namespaces").and_then(Value::as_array);
        let names = names.into_iter().flatten().filter_map(Value::as_str);
        let mut namespaces: Vec<Box<str>> = names.map(Into::into).collect();
        let namespace_selector = term.get("namespaceSelector").filter(|s| !s.is_null());
        if namespaces.is_empty() && namespace_selector.is_none() {
            namespaces.push(own_namespace.into());
        }
        Some(Self {
            topology_key: key.into(),
            selector: Selector::from_object(selector).ok()?,
            namespaces,
            namespace_selector: namespace_selector
                .map(Selector::from_object)
                .transpose()
                .ok()?,
        })
    }

    pub fn list(terms: &Value, own_namespace: &str) -> Vec<Self> {
        let terms = terms.as_array().into_iter().flatten();
        terms
            .filter_map(|term| Self::parse(term, own_namespace))
            .collect()
    }

    /// Whether it matches pods with these labels in this namespace.
    pub(super) fn matches(
        &self,
        namespace: &str,
        labels: &BTreeMap<String, String>,
        namespaces: &Namespaces,
    ) -> bool {
        self.covers(namespace, namespaces)
            && self
                .selector
                .matches(|key| labels.get(key).map(String::as_str))
    }

    fn covers(&self, namespace: &str, namespaces: &Namespaces) -> bool {
        if self.namespaces.iter().any(|n| &**n == namespace) {
            return true;
        }
        let Some(selector) = &self.namespace_selector else {
            return false;
        };
        let labels = namespaces.get(namespace);
        selector.is_everything()
            || labels.is_some_and(|l| selector.matches(|key| l.get(key).map(String::as_str)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(term: &Value, namespace: &str, expected: bool) {
        let mut object = json!({"topologyKey": "zone",
            "labelSelector": {"matchLabels": {"app": "web"}}});
        for (key, value) in term.as_object().unwrap() {
            object[key] = value.clone();
        }
        let parsed = PodTerm::parse(&object, "own").unwrap();
        let labels = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
        let namespaces = Namespaces::from([("team".into(), labels("team", "a"))]);
        let found = parsed.matches(namespace, &labels("app", "web"), &namespaces);
        assert_eq!(found, expected, "{object} in {namespace}");
    }

    #[test]
    fn terms_cover_their_own_namespace_unless_they_name_others() {
        check(&json!({}), "own", true);
        check(&json!({}), "other", false);
        check(&json!({"namespaces": ["other"]}), "other", true);
        check(&json!({"namespaces": ["other"]}), "own", false);
        check(&json!({"namespaceSelector": {}}), "unknown", true);
        let team = json!({"namespaceSelector": {"matchLabels": {"team": "a"}}});
        check(&team, "team", true);
        check(&team, "own", false);
        check(
            &json!({"namespaces": ["own"], "namespaceSelector": {"matchLabels": {"team": "b"}}}),
            "own",
            true,
        );
    }

    #[test]
    fn labels_must_match_and_no_selector_matches_nothing() {
        check(
            &json!({"labelSelector": {"matchLabels": {"app": "db"}}}),
            "own",
            false,
        );
        check(&json!({"labelSelector": null}), "own", false);
        check(&json!({"labelSelector": {}}), "own", true);
    }
}
