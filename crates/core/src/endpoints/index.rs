//! Which services may a pod belong to? Each service is found by one pair of its selector, so that a pod asks
//! those that one of its labels leads to, and no others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::facts::Labels;

type Names = BTreeSet<Arc<str>>;
/// By key and value of a label.
type Pairs = BTreeMap<String, BTreeMap<String, Names>>;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Index {
    by_namespace: BTreeMap<Arc<str>, Pairs>,
}

impl Index {
    /// Remembers a service, by the pair of its selector that the fewest others are found by.
    /// Returns that pair, for [`Self::remove`].
    pub(super) fn insert(
        &mut self,
        namespace: &Arc<str>,
        name: &Arc<str>,
        selector: &Labels,
    ) -> Option<(String, String)> {
        let pairs = self.by_namespace.entry(namespace.clone()).or_default();
        let crowd = |(key, value): &(&String, &String)| {
            pairs
                .get(*key)
                .and_then(|v| v.get(*value))
                .map_or(0, Names::len)
        };
        let (key, value) = selector.iter().min_by_key(crowd)?;
        let names = pairs.entry(key.clone()).or_default();
        names.entry(value.clone()).or_default().insert(name.clone());
        Some((key.clone(), value.clone()))
    }

    /// Forgets a service that is found by this pair.
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

    /// The services that a pod with these labels may belong to.
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
    fn a_pod_asks_only_services_that_one_of_its_labels_leads_to() {
        let mut index = Index::default();
        let ns: Arc<str> = "ns".into();
        let insert = |index: &mut Index, name: &str, selector: &[(&str, &str)]| {
            index.insert(&ns, &name.into(), &labels(selector))
        };
        let tier = ("tier", "node");
        insert(&mut index, "a", &[tier]);
        // `tier` is crowded already, so these are found by what tells them apart.
        let pair = insert(&mut index, "b", &[("app", "b"), tier]).unwrap();
        insert(&mut index, "c", &[("app", "c"), tier]);
        let found = |index: &Index, namespace: &str, of: &[(&str, &str)]| -> Vec<String> {
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
