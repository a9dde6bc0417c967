//! The order in which nodes are updated: pseudo-random, and the same after a restart.
//!
//! Upstream's order is random (rule 5.1.5). This one differs between DaemonSets, so that not always the same nodes are
//! first.

use std::collections::BTreeMap;
use std::sync::Arc;

const PRIME: u32 = 16_777_619;
const BASIS: u32 = 2_166_136_261;

/// The FNV-1a hash of a name: of a node, or of a DaemonSet as `namespace/name`.
pub fn seed(name: &str) -> u32 {
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(PRIME);
    name.bytes().fold(BASIS, step)
}

/// The sort key of a node in a DaemonSet's order, from the seeds of both.
pub fn order(daemon_set: u32, node: u32) -> u32 {
    let mut mixed = daemon_set ^ node;
    mixed = (mixed ^ (mixed >> 16)).wrapping_mul(0x7feb_352d);
    mixed = (mixed ^ (mixed >> 15)).wrapping_mul(0x846c_a68b);
    mixed ^ (mixed >> 16)
}

/// The place of a node in the order. Two nodes never share one in practice: the second part is an independent hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    order: u32,
    tie: u32,
}

impl Place {
    /// From the seed of the DaemonSet, the seed of the node and the node's name.
    pub fn new(daemon_set: u32, node: u32, name: &str) -> Self {
        let backwards = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(PRIME);
        Self {
            order: order(daemon_set, node),
            tie: name.bytes().rev().fold(BASIS, backwards),
        }
    }

    /// The first part: what [`order`] returns.
    pub fn order(self) -> u32 {
        self.order
    }

    pub fn of(daemon_set: u32, name: &str) -> Self {
        Self::new(daemon_set, seed(name), name)
    }
}

/// The rollout's nodes in order, by the value of the `spread` label (one empty value without it).
#[derive(Clone, Debug)]
pub struct Places<Id> {
    by_value: BTreeMap<Arc<str>, BTreeMap<Place, Id>>,
    total: usize,
}

impl<Id> Default for Places<Id> {
    fn default() -> Self {
        Self {
            by_value: BTreeMap::new(),
            total: 0,
        }
    }
}

impl<Id: Copy> Places<Id> {
    pub fn total(&self) -> i64 {
        i64::try_from(self.total).unwrap_or(i64::MAX)
    }

    /// Adds a node that is not there yet.
    pub fn insert(&mut self, value: &Arc<str>, place: Place, id: Id) {
        let nodes = match self.by_value.get_mut(value) {
            Some(nodes) => nodes,
            None => self.by_value.entry(value.clone()).or_default(),
        };
        self.total += usize::from(nodes.insert(place, id).is_none());
    }

    pub fn remove(&mut self, value: &str, place: Place) {
        let Some(nodes) = self.by_value.get_mut(value) else {
            return;
        };
        self.total -= usize::from(nodes.remove(&place).is_some());
        if nodes.is_empty() {
            self.by_value.remove(value);
        }
    }

    /// The last of the first `size` nodes of each value, the nodes taken evenly over the values.
    pub fn cut(&self, size: i64) -> BTreeMap<Arc<str>, (Place, Id)> {
        let size = usize::try_from(size).unwrap_or(0);
        let counts: Vec<usize> = self.by_value.values().map(BTreeMap::len).collect();
        let shares = evenly(&counts, size);
        let last = |((value, nodes), share): ((&Arc<str>, &BTreeMap<Place, Id>), usize)| {
            let (place, id) = nodes.iter().nth(share.checked_sub(1)?)?;
            Some((value.clone(), (*place, *id)))
        };
        self.by_value.iter().zip(shares).filter_map(last).collect()
    }

    /// All nodes in the order in which growing sizes take them: one of each value in turn.
    pub fn ranked(&self) -> Vec<Id> {
        let values = self.by_value.values().enumerate();
        let all = values.flat_map(|(value, nodes)| {
            let nodes = nodes.values().enumerate();
            nodes.map(move |(round, id)| ((round, value), *id))
        });
        let mut all: Vec<((usize, usize), Id)> = all.collect();
        all.sort_by_key(|(turn, _)| *turn);
        all.into_iter().map(|(_, id)| id).collect()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, Place, Id)> {
        let values = self.by_value.iter();
        values.flat_map(|(value, nodes)| nodes.iter().map(move |(p, id)| (value, *p, *id)))
    }
}

/// Takes one of each in turn until `size` are taken or none are left.
fn evenly(counts: &[usize], size: usize) -> Vec<usize> {
    let mut shares = vec![0; counts.len()];
    let mut left = size.min(counts.iter().sum());
    while left > 0 {
        let open = |index: &usize| shares[*index] < counts[*index];
        let open: Vec<usize> = (0..counts.len()).filter(open).collect();
        let room = open.iter().map(|index| counts[*index] - shares[*index]);
        let each = room.min().unwrap_or(0).min(left / open.len());
        if each == 0 {
            open.iter().take(left).for_each(|index| shares[*index] += 1);
            break;
        }
        for index in &open {
            shares[*index] += each;
        }
        left -= each * open.len();
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s5_1_5_the_order_is_stable_and_differs_between_daemon_sets() {
        let ordered = |daemon_set: &str| {
            let mut nodes: Vec<String> = (1..=5).map(|n| format!("node-{n}")).collect();
            nodes.sort_by_key(|node| order(seed(daemon_set), seed(node)));
            nodes.join(" ")
        };
        assert_eq!(ordered("a/logs"), "node-4 node-2 node-5 node-1 node-3");
        assert_ne!(ordered("a/logs"), ordered("a/net"));
    }

    #[test]
    fn r3_1_spread_takes_one_of_each_value_in_turn() {
        assert_eq!(evenly(&[5, 5, 5], 7), [3, 2, 2]);
        assert_eq!(evenly(&[1, 9, 2], 8), [1, 5, 2]);
        assert_eq!(evenly(&[1, 9, 2], 2), [1, 1, 0]);
        assert_eq!(evenly(&[2, 2], 9), [2, 2]);
        assert_eq!(evenly(&[], 3), [0; 0]);
        assert_eq!(evenly(&[4], 0), [0]);
    }

    #[test]
    fn r3_1_a_larger_size_keeps_every_node_of_a_smaller_one() {
        let mut places = Places::default();
        for number in 0..60_u32 {
            let value: Arc<str> = ["a", "b", "", "c"][(number % 7 % 4) as usize].into();
            let place = Place::of(7, &format!("node-{number}"));
            places.insert(&value, place, number);
        }
        let admitted = |size: usize| {
            let cut = places.cut(i64::try_from(size).unwrap());
            let all = places.iter();
            let first =
                all.filter(|(value, place, _)| cut.get(*value).is_some_and(|c| place <= &c.0));
            first.map(|(_, _, id)| id).collect::<Vec<u32>>()
        };
        for size in 0..=60_usize {
            let (smaller, larger) = (admitted(size), admitted(size + 1));
            assert_eq!(smaller.len(), size);
            assert!(smaller.iter().all(|id| larger.contains(id)), "{size}");
        }
        let ranked = places.ranked();
        for size in 0..=60_usize {
            let mut first = ranked[..size].to_vec();
            let mut cut = admitted(size);
            first.sort_unstable();
            cut.sort_unstable();
            assert_eq!(first, cut, "the first {size} are those up to the cut");
        }
    }
}
