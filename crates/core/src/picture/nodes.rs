//! The nodes of a cluster, shared by the pictures of all DaemonSets.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::daemonset::NodeView;

/// A label with more values than this groups nothing, such as the host name.
const GROUPS_MAX: usize = 64;

/// Nodes by index. An index belongs to one name for ever: a node that returns gets its old one.
#[derive(Clone, Debug, Default)]
pub struct Nodes {
    entries: Vec<Entry>,
    by_name: BTreeMap<Arc<str>, usize>,
    present: usize,
}

#[derive(Clone, Debug)]
struct Entry {
    name: Arc<str>,
    /// `None` once it is deleted.
    view: Option<NodeView>,
}

impl Nodes {
    /// Indexes are below this.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many nodes there are.
    pub fn present(&self) -> usize {
        self.present
    }

    /// `None` if it was deleted.
    pub fn get(&self, index: usize) -> Option<&NodeView> {
        self.entries.get(index)?.view.as_ref()
    }

    /// The name, also of a deleted node.
    pub fn name(&self, index: usize) -> Option<&Arc<str>> {
        self.entries.get(index).map(|entry| &entry.name)
    }

    pub fn index(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    pub fn iter(&self) -> impl Iterator<Item = (usize, &NodeView)> {
        let entries = self.entries.iter().enumerate();
        entries.filter_map(|(index, entry)| Some((index, entry.view.as_ref()?)))
    }

    /// Enters a node. Returns its index if something of it has changed.
    pub fn apply(&mut self, mut view: NodeView) -> Option<usize> {
        let Some(index) = self.index(&view.name) else {
            let index = self.entries.len();
            self.by_name.insert(view.name.clone(), index);
            let name = view.name.clone();
            self.entries.push(Entry {
                name,
                view: Some(view),
            });
            self.present += 1;
            return Some(index);
        };
        let entry = &mut self.entries[index];
        if entry.view.as_ref() == Some(&view) {
            return None;
        }
        self.present += usize::from(entry.view.is_none());
        view.name = entry.name.clone();
        entry.view = Some(view);
        Some(index)
    }

    /// Returns its index if it was there.
    pub fn remove(&mut self, name: &str) -> Option<usize> {
        let index = self.index(name)?;
        self.entries[index].view.take()?;
        self.present -= 1;
        Some(index)
    }

    /// The labels by which nodes can be grouped, by key: several nodes share a value, and there are at least two values.
    pub fn group_labels(&self) -> Vec<String> {
        let mut values: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
        for (_, view) in self.iter() {
            for (key, value) in &view.labels {
                let of_key = values.entry(key).or_default();
                if of_key.len() <= GROUPS_MAX {
                    *of_key.entry(value).or_default() += 1;
                }
            }
        }
        let groups = values.into_iter().filter(|(_, values)| {
            (2..=GROUPS_MAX).contains(&values.len()) && values.values().any(|nodes| *nodes > 1)
        });
        groups.map(|(key, _)| key.to_owned()).collect()
    }
}
