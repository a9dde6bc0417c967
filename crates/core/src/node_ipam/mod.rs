//! Which node gets which pod range (`spec.podCIDR`): one block of [`NODE_BITS`] prefix bits of the cluster's range for every
//! node that asks. A block is never given twice, and a released one is reused last. All state is rebuilt from the nodes.

mod allocator;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

pub use allocator::Allocator;

use crate::cidr::Cidr;

/// The prefix length of a node's range: 254 addresses.
pub const NODE_BITS: u8 = 24;
/// The shortest prefix of a cluster's range, as upstream: the table of its blocks stays small.
pub const CLUSTER_BITS_MIN: u8 = 8;

/// The reason of the event of a node that gets no range, as upstream.
pub const NOT_AVAILABLE: &str = "CIDRNotAvailable";

/// What the rules read of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFacts {
    pub name: Arc<str>,
    pub uid: Arc<str>,
    /// Whether it asks for a range.
    pub asks: bool,
    /// Whether it has `spec.podCIDRs`, even if none of them is an IPv4 range.
    pub has_ranges: bool,
    /// The IPv4 ranges that it has.
    pub ranges: Vec<Cidr>,
}

/// What to do about a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Write the range to the node.
    Assign {
        name: Arc<str>,
        uid: Arc<str>,
        range: Cidr,
    },
    /// Say that no range is left. Once per node.
    Exhausted { name: Arc<str>, uid: Arc<str> },
}

#[derive(Debug)]
struct Node {
    name: Arc<str>,
    asks: bool,
    has_ranges: bool,
    ranges: Vec<Cidr>,
    /// Given to it, and not yet seen in its object.
    assigned: Option<Cidr>,
    waits: bool,
    is_told: bool,
}

/// See the [module](self).
#[derive(Debug)]
pub struct Ipam {
    allocator: Allocator,
    /// By uid.
    nodes: HashMap<Arc<str>, Node>,
    /// By node name, the ranges in the objects of nodes' networks.
    published: HashMap<Arc<str>, Cidr>,
    /// Nodes without a range, in the order in which they asked; some may be gone.
    waiting: VecDeque<Arc<str>>,
    /// Nodes whose write failed.
    retries: BTreeSet<Arc<str>>,
    synced: bool,
}

impl Ipam {
    pub fn new(cluster: Cidr) -> Self {
        Self {
            allocator: Allocator::new(cluster),
            nodes: HashMap::new(),
            published: HashMap::new(),
            waiting: VecDeque::new(),
            retries: BTreeSet::new(),
            synced: false,
        }
    }

    pub fn on_node(&mut self, facts: NodeFacts) {
        let uid = facts.uid;
        let node = self.nodes.entry(uid.clone()).or_insert_with(|| Node {
            name: facts.name,
            asks: false,
            has_ranges: false,
            ranges: Vec::new(),
            assigned: None,
            waits: false,
            is_told: false,
        });
        // What the object says replaces what was given to it; the same block must not be free in between.
        for range in &facts.ranges {
            self.allocator.occupy(*range);
        }
        for range in std::mem::replace(&mut node.ranges, facts.ranges) {
            self.allocator.release(range);
        }
        (node.asks, node.has_ranges) = (facts.asks, facts.has_ranges);
        if node.has_ranges {
            (node.waits, node.is_told) = (false, false);
            if let Some(range) = node.assigned.take() {
                self.allocator.release(range);
            }
        } else if node.asks && node.assigned.is_none() && !node.waits {
            node.waits = true;
            self.waiting.push_back(uid);
        } else if !node.asks {
            node.waits = false;
        }
    }

    pub fn on_node_deleted(&mut self, uid: &str) {
        self.retries.remove(uid);
        if let Some(node) = self.nodes.remove(uid) {
            for range in node.ranges.into_iter().chain(node.assigned) {
                self.allocator.release(range);
            }
        }
    }

    /// The range in the object of a node's network. It is in use until the object goes, though the Node may be missing from lists,
    /// because it is damaged: its pods run.
    pub fn on_published(&mut self, name: &Arc<str>, range: Option<Cidr>) {
        if let Some(range) = range {
            self.allocator.occupy(range);
        }
        let before = match range {
            Some(range) => self.published.insert(name.clone(), range),
            None => self.published.remove(name),
        };
        if let Some(before) = before {
            self.allocator.release(before);
        }
    }

    /// All nodes are known: ranges can be given.
    pub fn on_synced(&mut self) {
        self.synced = true;
        self.allocator.start_after_used();
    }

    /// The write of a range failed, and whether it was applied may be unknown: the node is given the same again.
    pub fn retry(&mut self, uid: &str) {
        if let Some((uid, _)) = self.nodes.get_key_value(uid) {
            self.retries.insert(uid.clone());
        }
    }

    pub fn take_actions(&mut self) -> Vec<Action> {
        if !self.synced {
            return Vec::new();
        }
        let mut actions = Vec::new();
        for uid in std::mem::take(&mut self.retries) {
            let node = self.nodes.get(&uid);
            if let Some((name, range)) = node.and_then(|n| Some((n.name.clone(), n.assigned?))) {
                actions.push(Action::Assign { name, uid, range });
            }
        }
        while let Some(uid) = self.waiting.pop_front() {
            let Some(node) = self.nodes.get_mut(&uid).filter(|node| node.waits) else {
                continue;
            };
            let Some(range) = self.allocator.allocate() else {
                self.waiting.push_front(uid);
                break;
            };
            (node.waits, node.is_told, node.assigned) = (false, false, Some(range));
            let name = node.name.clone();
            actions.push(Action::Assign { name, uid, range });
        }
        for uid in &self.waiting {
            if let Some(node) = self.nodes.get_mut(uid)
                && node.waits
                && !node.is_told
            {
                node.is_told = true;
                let (name, uid) = (node.name.clone(), uid.clone());
                actions.push(Action::Exhausted { name, uid });
            }
        }
        actions
    }

    /// How many blocks the cluster's range has, and how many are in use.
    pub fn usage(&self) -> (u32, usize) {
        self.allocator.usage()
    }
}
