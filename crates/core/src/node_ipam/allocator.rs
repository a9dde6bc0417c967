//! The blocks of the cluster's range.

use std::collections::{HashMap, VecDeque};

use super::NODE_BITS;
use crate::cidr::Cidr;

/// Gives out blocks in ascending order, and released ones in the order of their release after all others.
#[derive(Debug)]
pub struct Allocator {
    cluster: Cidr,
    /// By block, how many nodes have a range there. Users may have given a range to two nodes by hand.
    users: HashMap<u32, u32>,
    /// No block from this one on was ever given.
    next: u32,
    /// Blocks below `next` that were free when they were added.
    released: VecDeque<u32>,
}

impl Allocator {
    pub fn new(cluster: Cidr) -> Self {
        Self {
            cluster,
            users: HashMap::new(),
            next: 0,
            released: VecDeque::new(),
        }
    }

    /// Ranges outside the cluster's are not counted.
    pub fn occupy(&mut self, range: Cidr) {
        for block in self.cluster.numbers(NODE_BITS, range) {
            *self.users.entry(block).or_default() += 1;
        }
    }

    /// Reverts one [`occupy`](Self::occupy).
    pub fn release(&mut self, range: Cidr) {
        for block in self.cluster.numbers(NODE_BITS, range) {
            let Some(users) = self.users.get_mut(&block) else {
                continue;
            };
            *users -= 1;
            if *users == 0 {
                self.users.remove(&block);
                // One above was set by hand, and its turn comes.
                if block < self.next {
                    self.released.push_back(block);
                }
            }
        }
    }

    /// After the first list of nodes: continues behind the last block in use, since those below it may have been
    /// released a moment ago.
    pub fn start_after_used(&mut self) {
        let after = self.users.keys().max().map_or(0, |last| last + 1);
        if after <= self.next {
            return;
        }
        let free = (self.next..after).filter(|block| !self.users.contains_key(block));
        self.released.extend(free);
        self.next = after;
    }

    /// Occupies a free block.
    pub fn allocate(&mut self) -> Option<Cidr> {
        let total = self.cluster.subnets(NODE_BITS);
        let block = loop {
            let block = if self.next < total {
                self.next += 1;
                self.next - 1
            } else {
                self.released.pop_front()?
            };
            if !self.users.contains_key(&block) {
                break block;
            }
        };
        let range = self.cluster.subnet(NODE_BITS, block);
        self.occupy(range);
        Some(range)
    }

    pub fn usage(&self) -> (u32, usize) {
        (self.cluster.subnets(NODE_BITS), self.users.len())
    }
}
