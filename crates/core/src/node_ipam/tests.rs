//! The rules by example, and random histories against a naive model.

use std::collections::{BTreeMap, BTreeSet};

use kennel_test_support::with_seeds;

use super::*;

fn facts(uid: u32, asks: bool, ranges: &[Cidr]) -> NodeFacts {
    NodeFacts {
        name: format!("node-{uid}").into(),
        uid: uid.to_string().into(),
        asks,
        has_ranges: !ranges.is_empty(),
        ranges: ranges.to_vec(),
    }
}

fn cidr(text: &str) -> Cidr {
    text.parse().unwrap()
}

/// Tells the rules of a node that asks, and returns the ranges that are given then.
fn join(ipam: &mut Ipam, uid: u32) -> Vec<String> {
    ipam.on_node(facts(uid, true, &[]));
    given(ipam)
}

fn given(ipam: &mut Ipam) -> Vec<String> {
    let actions = ipam.take_actions().into_iter();
    let shown = actions.map(|action| match action {
        Action::Assign { range, .. } => range.to_string(),
        Action::Exhausted { name, .. } => format!("none for {name}"),
    });
    shown.collect()
}

fn synced(cluster: &str) -> Ipam {
    let mut ipam = Ipam::new(cidr(cluster));
    ipam.on_synced();
    ipam
}

#[test]
fn n1_1_only_nodes_that_ask_get_a_range() {
    let mut ipam = synced("10.128.0.0/9");
    ipam.on_node(facts(1, false, &[]));
    assert_eq!(given(&mut ipam), Vec::<String>::new());
    assert_eq!(join(&mut ipam, 1), ["10.128.0.0/24"]);
    assert_eq!(join(&mut ipam, 2), ["10.128.1.0/24"]);
    ipam.on_node(facts(1, true, &[cidr("10.128.0.0/24")]));
    assert_eq!(given(&mut ipam), Vec::<String>::new());
}

#[test]
fn n1_1_a_released_range_is_reused_last() {
    let mut ipam = synced("10.0.0.0/22");
    assert_eq!(join(&mut ipam, 1), ["10.0.0.0/24"]);
    assert_eq!(join(&mut ipam, 2), ["10.0.1.0/24"]);
    ipam.on_node_deleted("1");
    assert_eq!(join(&mut ipam, 3), ["10.0.2.0/24"]);
    assert_eq!(join(&mut ipam, 4), ["10.0.3.0/24"]);
    ipam.on_node_deleted("3");
    assert_eq!(join(&mut ipam, 5), ["10.0.0.0/24"]);
    assert_eq!(join(&mut ipam, 6), ["10.0.2.0/24"]);
}

#[test]
fn n1_1_ranges_survive_a_restart_and_the_last_released_is_not_reused_first() {
    let mut ipam = Ipam::new(cidr("10.0.0.0/22"));
    ipam.on_node(facts(1, true, &[cidr("10.0.1.0/24")]));
    assert_eq!(join(&mut ipam, 2), Vec::<String>::new(), "before the sync");
    ipam.on_synced();
    assert_eq!(given(&mut ipam), ["10.0.2.0/24"]);
    assert_eq!(join(&mut ipam, 3), ["10.0.3.0/24"]);
    assert_eq!(join(&mut ipam, 4), ["10.0.0.0/24"]);
}

#[test]
fn n1_1_an_exhausted_range_is_said_once_per_node_and_served_when_one_is_free() {
    let mut ipam = synced("10.0.0.0/24");
    assert_eq!(join(&mut ipam, 1), ["10.0.0.0/24"]);
    assert_eq!(join(&mut ipam, 2), ["none for node-2"]);
    assert_eq!(join(&mut ipam, 2), Vec::<String>::new());
    assert_eq!(join(&mut ipam, 3), ["none for node-3"]);
    ipam.on_node_deleted("1");
    assert_eq!(given(&mut ipam), ["10.0.0.0/24"]);
    assert_eq!(given(&mut ipam), Vec::<String>::new());
}

#[test]
fn a_range_set_by_hand_is_not_given_and_one_outside_is_ignored() {
    let mut ipam = synced("10.0.0.0/22");
    ipam.on_node(facts(1, false, &[cidr("10.0.0.0/23")]));
    ipam.on_node(facts(2, false, &[cidr("192.168.0.0/24")]));
    assert_eq!(join(&mut ipam, 3), ["10.0.2.0/24"]);
    ipam.on_node_deleted("1");
    assert_eq!(join(&mut ipam, 4), ["10.0.3.0/24"]);
    assert_eq!(join(&mut ipam, 5), ["10.0.0.0/24"]);
}

/// A Node whose stored bytes are damaged is in no list, and its pods run.
#[test]
fn the_range_of_a_node_that_is_missing_stays_its_own_while_it_is_published() {
    let name: Arc<str> = "node-1".into();
    let own = cidr("10.0.1.0/24");
    let mut ipam = Ipam::new(cidr("10.0.0.0/22"));
    ipam.on_published(&name, Some(own));
    ipam.on_synced();
    let others: Vec<String> = (2..=5).flat_map(|uid| join(&mut ipam, uid)).collect();
    assert_eq!(
        others,
        [
            "10.0.2.0/24",
            "10.0.3.0/24",
            "10.0.0.0/24",
            "none for node-5"
        ]
    );
    // It is repaired.
    ipam.on_node(facts(1, true, &[own]));
    ipam.on_published(&name, Some(own));
    assert_eq!(given(&mut ipam), Vec::<String>::new());
    // It is deleted, and then its object.
    ipam.on_node_deleted("1");
    assert_eq!(given(&mut ipam), Vec::<String>::new());
    ipam.on_published(&name, None);
    assert_eq!(given(&mut ipam), ["10.0.1.0/24"]);
}

#[test]
fn a_failed_write_is_repeated_with_the_same_range() {
    let mut ipam = synced("10.0.0.0/22");
    assert_eq!(join(&mut ipam, 1), ["10.0.0.0/24"]);
    ipam.retry("1");
    assert_eq!(given(&mut ipam), ["10.0.0.0/24"]);
    ipam.retry("1");
    ipam.on_node(facts(1, true, &[cidr("10.0.3.0/24")]));
    assert_eq!(
        given(&mut ipam),
        Vec::<String>::new(),
        "somebody else gave it another"
    );
    ipam.retry("7");
    assert_eq!(given(&mut ipam), Vec::<String>::new());
}

/// The naive model: the nodes, and when each block was released last.
#[derive(Default)]
struct Model {
    /// By node, the block that it has or was promised.
    blocks: BTreeMap<u32, Option<u32>>,
    /// In the order of asking.
    waiting: Vec<u32>,
    released: BTreeMap<u32, u32>,
    clock: u32,
}

impl Model {
    fn best_free(&self, total: u32) -> Option<u32> {
        let used: BTreeSet<u32> = self.blocks.values().flatten().copied().collect();
        let free = (0..total).filter(|block| !used.contains(block));
        free.min_by_key(|block| (self.released.get(block).copied().unwrap_or(0), *block))
    }

    fn serve(&mut self, total: u32) -> BTreeMap<u32, u32> {
        let mut served = BTreeMap::new();
        while let Some(node) = self.waiting.first().copied() {
            let Some(block) = self.best_free(total) else {
                break;
            };
            self.waiting.remove(0);
            self.blocks.insert(node, Some(block));
            served.insert(node, block);
        }
        served
    }

    fn delete(&mut self, node: u32) {
        self.clock += 1;
        if let Some(Some(block)) = self.blocks.remove(&node) {
            self.released.insert(block, self.clock);
        }
        self.waiting.retain(|other| *other != node);
    }
}

#[test]
fn n1_1_random_histories_agree_with_a_naive_model() {
    const TOTAL: u32 = 8;
    with_seeds(0..50, |seed| {
        let mut random = fastrand::Rng::with_seed(seed);
        let cluster = cidr("10.0.0.0/21");
        let (mut ipam, mut model) = (synced("10.0.0.0/21"), Model::default());
        // Nodes that the watch has delivered with their range.
        let mut shown = BTreeSet::new();
        let mut next_node = 0;
        for _ in 0..300 {
            let nodes: Vec<u32> = model.blocks.keys().copied().collect();
            let some = (!nodes.is_empty()).then(|| nodes[random.usize(..nodes.len())]);
            match (random.u8(..4), some) {
                (0 | 1, _) if nodes.len() < 12 => {
                    next_node += 1;
                    model.blocks.insert(next_node, None);
                    model.waiting.push(next_node);
                    ipam.on_node(facts(next_node, true, &[]));
                }
                (2, Some(node)) => {
                    model.delete(node);
                    ipam.on_node_deleted(&node.to_string());
                }
                // The watch delivers the node, with its range or, from before the write, without.
                (_, Some(node)) => {
                    let late = !shown.contains(&node) && random.bool();
                    let block = model.blocks[&node].filter(|_| !late);
                    shown.extend(block.map(|_| node));
                    let range = block.map(|block| cluster.subnet(NODE_BITS, block));
                    ipam.on_node(facts(node, true, range.as_slice()));
                }
                _ => {}
            }
            let expected = model.serve(TOTAL);
            let assigned: BTreeMap<u32, u32> = ipam
                .take_actions()
                .into_iter()
                .filter_map(|action| match action {
                    Action::Assign { uid, range, .. } => {
                        let block = cluster.numbers(NODE_BITS, range).start;
                        Some((uid.parse().unwrap(), block))
                    }
                    Action::Exhausted { .. } => None,
                })
                .collect();
            assert_eq!(assigned, expected);
        }
    });
}

#[test]
fn n1_1_no_range_is_given_twice_through_restarts_and_lost_writes() {
    with_seeds(0..50, |seed| {
        let mut random = fastrand::Rng::with_seed(seed);
        // What is stored: each node, and its range if it was written.
        let mut stored: BTreeMap<u32, Option<Cidr>> = BTreeMap::new();
        let mut ipam = synced("10.0.0.0/21");
        let mut next_node = 0;
        for _ in 0..300 {
            match random.u8(..8) {
                0..=3 => {
                    next_node += 1;
                    stored.insert(next_node, None);
                    ipam.on_node(facts(next_node, true, &[]));
                }
                4 | 5 => {
                    if let Some(node) = stored.keys().nth(random.usize(..=stored.len())).copied() {
                        stored.remove(&node);
                        ipam.on_node_deleted(&node.to_string());
                    }
                }
                6 => {
                    ipam = Ipam::new(cidr("10.0.0.0/21"));
                    for (node, range) in &stored {
                        ipam.on_node(facts(*node, true, range.as_slice()));
                    }
                    ipam.on_synced();
                }
                _ => {}
            }
            for action in ipam.take_actions() {
                let Action::Assign { uid, range, .. } = action else {
                    continue;
                };
                let node: u32 = uid.parse().unwrap();
                let applied = random.u8(..4) > 0;
                if applied {
                    assert_eq!(stored[&node], None, "a range is given once");
                    stored.insert(node, Some(range));
                }
                match (applied, random.bool()) {
                    (true, true) => ipam.on_node(facts(node, true, &[range])),
                    // The response was lost, and the watch is late: the event comes before the next round.
                    (true, false) => {
                        ipam.retry(&uid);
                        ipam.on_node(facts(node, true, &[range]));
                    }
                    (false, _) => ipam.retry(&uid),
                }
            }
            let all: Vec<Cidr> = stored.values().flatten().copied().collect();
            let distinct: BTreeSet<Cidr> = all.iter().copied().collect();
            assert_eq!(all.len(), distinct.len(), "{stored:?}");
            // A retry is due at once here, so that whoever has nothing has nothing because nothing is left.
            let (total, used) = ipam.usage();
            let unserved = stored.len() > all.len();
            assert!(
                !unserved || used == total as usize || all.len() < used,
                "{stored:?}"
            );
        }
    });
}
