//! Finds the services that may select a pod: each service is indexed by one label of its selector.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::facts::Labels;

type Names = BTreeSet<Arc<str>>;
/// By label key and value.
type Pairs = BTreeMap<String, BTreeMap<String, Names>>;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct SelectorIndex {
    by_namespace: BTreeMap<Arc<str>, Pairs>,
}

impl SelectorIndex {
    /// Indexes a service by the label of its selector that the fewest others are indexed by. Returns that label, for
    /// [`Self::remove`].
    pub(super) fn insert(
        &mut self,
        namespace: &Arc<str>,
        name: &Arc<str>,
        selector: &Labels,
    ) -> Option<(String, String)> {
        let pairs = self.by_namespace.entry(namespace.clone()).or_default();
        let count_services = |(key, value): &(&String, &String)| {
            pairs
                .get(*key)
                .and_then(|v| v.get(*value))
                .map_or(0, Names::len)
        };
        let (key, value) = selector.iter().min_by_key(count_services)?;
        let names = pairs.entry(key.clone()).or_default();
        names.entry(value.clone()).or_default().insert(name.clone());
        Some((key.clone(), value.clone()))
    }

    pub(super) fn remove(&mut self, namespace: &str, name: &str, pair: &(String, String)) {
        let Some(pairs) = self.by_namespace.get_mut(namespace) else {
            return;
        };
        if let Some(values) = pairs.get_mut(&pair.0) {
            if let Some(names) = values.get_mut(&pair.1) {
                names.remove(name);
                if names.is_empty() {
                    values.remove(&pair.1);
                }
            }
            if values.is_empty() {
                pairs.remove(&pair.0);
            }
        }
        if pairs.is_empty() {
            self.by_namespace.remove(namespace);
        }
    }

    /// The services that may select a pod with these labels.
    pub(super) fn candidates<'a>(
        &'a self,
        namespace: &str,
        labels: &'a Labels,
    ) -> impl Iterator<Item = &'a Arc<str>> + use<'a> {
        let pairs = self.by_namespace.get(namespace);
        labels
            .iter()
            .filter_map(move |(key, value)| pairs?.get(key)?.get(value))
            .flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        pairs.iter().map(owned).collect()
    }

    #[test]
    fn candidates_are_services_indexed_by_a_label_of_the_pod() {
        let mut index = SelectorIndex::default();
        let ns: Arc<str> = "ns".into();
        let insert = |index: &mut SelectorIndex, name: &str, selector: &[(&str, &str)]| {
            index.insert(&ns, &name.into(), &labels(selector))
        };
        let tier = ("tier", "node");
        insert(&mut index, "a", &[tier]);
        // Many services are indexed by `tier` already, so these are indexed by `app`.
        let pair = insert(&mut index, "b", &[("app", "b"), tier]).unwrap();
        insert(&mut index, "c", &[("app", "c"), tier]);
        let found = |index: &SelectorIndex, namespace: &str, of: &[(&str, &str)]| -> Vec<String> {
            let of = labels(of);
            let found = index.candidates(namespace, &of);
            found.map(ToString::to_string).collect()
        };
        assert_eq!(found(&index, "ns", &[tier]), ["a"]);
        assert_eq!(found(&index, "ns", &[("app", "b"), tier]), ["b", "a"]);
        assert_eq!(found(&index, "other", &[tier]), [""; 0]);
        index.remove("ns", "b", &pair);
        assert_eq!(found(&index, "ns", &[("app", "b"), tier]), ["a"]);
    }
}
