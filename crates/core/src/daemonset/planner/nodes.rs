//! The nodes: those that exist, and those that pods still name.
//!
//! Each has a small number, so that slots can lie in plain arrays. A number is given anew when its
//! node is gone and nothing refers to it any more.

use std::collections::HashMap;
use std::sync::Arc;

use super::super::rollout::seed;
use super::super::view::NodeView;

/// A node's number.
pub(super) type NodeId = u32;

#[derive(Debug)]
struct Entry {
    name: Arc<str>,
    seed: u32,
    view: Option<NodeView>,
    /// Pods that name it and creations under way for it.
    references: u32,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Nodes {
    entries: Vec<Entry>,
    numbers: HashMap<Arc<str>, NodeId>,
    free: Vec<NodeId>,
}

impl Nodes {
    /// All numbers are below this.
    pub(super) fn limit(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn number(&self, name: &str) -> Option<NodeId> {
        self.numbers.get(name).copied()
    }

    pub(super) fn name(&self, id: NodeId) -> &Arc<str> {
        &self.entries[id as usize].name
    }

    pub(super) fn seed(&self, id: NodeId) -> u32 {
        self.entries[id as usize].seed
    }

    pub(super) fn view(&self, id: NodeId) -> Option<&NodeView> {
        self.entries[id as usize].view.as_ref()
    }

    /// The number of a name, known or new.
    fn number_of(&mut self, name: &Arc<str>) -> NodeId {
        if let Some(id) = self.number(name) {
            return id;
        }
        let entry = Entry {
            name: name.clone(),
            seed: seed(name),
            view: None,
            references: 0,
        };
        let id = if let Some(id) = self.free.pop() {
            self.entries[id as usize] = entry;
            id
        } else {
            self.entries.push(entry);
            NodeId::try_from(self.entries.len() - 1).expect("fewer than four billion nodes")
        };
        self.numbers.insert(name.clone(), id);
        id
    }

    /// Puts what was seen of a node in the place of what was known.
    pub(super) fn put(&mut self, view: NodeView) -> (NodeId, Option<NodeView>) {
        let id = self.number_of(&view.name);
        (id, self.entries[id as usize].view.replace(view))
    }

    pub(super) fn remove(&mut self, id: NodeId) {
        self.entries[id as usize].view = None;
    }

    /// Something names this node.
    pub(super) fn refer(&mut self, name: &Arc<str>) -> NodeId {
        let id = self.number_of(name);
        self.retain(id);
        id
    }

    /// Something more depends on this number.
    pub(super) fn retain(&mut self, id: NodeId) {
        self.entries[id as usize].references += 1;
    }

    /// Something depends on it no longer.
    pub(super) fn release(&mut self, id: NodeId) {
        self.entries[id as usize].references -= 1;
    }

    /// Frees the number if nothing needs it any more. The caller has emptied its slots.
    pub(super) fn sweep(&mut self, id: NodeId) -> bool {
        let entry = &self.entries[id as usize];
        let unused = entry.view.is_none()
            && entry.references == 0
            && self.numbers.get(&entry.name) == Some(&id);
        if unused {
            self.numbers.remove(&entry.name);
            self.free.push(id);
        }
        unused
    }
}
