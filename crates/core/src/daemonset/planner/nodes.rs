//! The nodes: those that exist, and those that pods still name.
//!
//! Each has a small number, so that slots can lie in plain lists. A number is given anew when its
//! node is gone and nothing refers to it any more.

use std::collections::HashMap;
use std::sync::Arc;

use super::super::fit::{Fit, Rules};
use super::super::rollout::seed;
use super::super::view::NodeView;
use super::chunks::Chunks;
use crate::taint::{NO_EXECUTE, NO_SCHEDULE, Taint};

/// A node's number.
pub(super) type NodeId = u32;

/// What one reads of all nodes in a row.
#[derive(Clone, Copy, Debug)]
struct Brief {
    seed: u32,
    exists: bool,
    /// No taint of it repels anybody.
    untainted: bool,
}

#[derive(Debug)]
struct Entry {
    name: Arc<str>,
    view: Option<NodeView>,
    /// Pods that name it and creations under way for it.
    references: u32,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Nodes {
    entries: Chunks<Entry>,
    /// By the same numbers.
    briefs: Chunks<Brief>,
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
        self.briefs[id as usize].seed
    }

    pub(super) fn view(&self, id: NodeId) -> Option<&NodeView> {
        self.entries[id as usize].view.as_ref()
    }

    /// All numbers.
    pub(super) fn all(&self) -> impl Iterator<Item = NodeId> + use<> {
        0..NodeId::try_from(self.entries.len()).expect("numbers fit")
    }

    /// Whether a node fits; none if there is no such node.
    pub(super) fn judge(&self, id: NodeId, rules: &Rules) -> Option<Fit> {
        let brief = self.briefs[id as usize];
        if brief.exists && brief.untainted && rules.select_all() {
            // Nearly all nodes, for nearly all DaemonSets: no need to look closer.
            return Some(Fit {
                run: true,
                keep: true,
            });
        }
        self.view(id).map(|view| rules.judge(view))
    }

    /// The number of a name, known or new.
    fn number_of(&mut self, name: &Arc<str>) -> NodeId {
        if let Some(id) = self.number(name) {
            return id;
        }
        let entry = Entry {
            name: name.clone(),
            view: None,
            references: 0,
        };
        let brief = Brief {
            seed: seed(name),
            exists: false,
            untainted: false,
        };
        let id = if let Some(id) = self.free.pop() {
            self.entries[id as usize] = entry;
            self.briefs[id as usize] = brief;
            id
        } else {
            self.entries.push(entry);
            self.briefs.push(brief);
            NodeId::try_from(self.entries.len() - 1).expect("fewer than four billion nodes")
        };
        self.numbers.insert(name.clone(), id);
        id
    }

    /// Puts what was seen of a node in the place of what was known.
    pub(super) fn put(&mut self, view: NodeView) -> (NodeId, Option<NodeView>) {
        let id = self.number_of(&view.name);
        let repels = |taint: &Taint| [NO_SCHEDULE, NO_EXECUTE].contains(&taint.effect.as_str());
        let brief = &mut self.briefs[id as usize];
        brief.exists = true;
        brief.untainted = !view.taints.iter().any(repels);
        (id, self.entries[id as usize].view.replace(view))
    }

    pub(super) fn remove(&mut self, id: NodeId) {
        self.entries[id as usize].view = None;
        self.briefs[id as usize].exists = false;
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
