//! The order in which nodes are updated: pseudo-random, and the same after a restart.
//!
//! Upstream's order is random (rule 5.1.5). This one differs between DaemonSets, so that not always the same nodes are
//! first.

const PRIME: u32 = 16_777_619;
const BASIS: u32 = 2_166_136_261;

/// The FNV-1a hash of a name: of a node, or of a DaemonSet as `namespace/name`.
pub(in super::super) fn seed(name: &str) -> u32 {
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(PRIME);
    name.bytes().fold(BASIS, step)
}

/// The sort key of a node in a DaemonSet's order, from the seeds of both.
pub(in super::super) fn order(daemon_set: u32, node: u32) -> u32 {
    let mut mixed = daemon_set ^ node;
    mixed = (mixed ^ (mixed >> 16)).wrapping_mul(0x7feb_352d);
    mixed = (mixed ^ (mixed >> 15)).wrapping_mul(0x846c_a68b);
    mixed ^ (mixed >> 16)
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
}
