//! States that the API refuses (R8.1): no node changes its revision, and a person is told.

use std::sync::Arc;

use super::STABLE;
use super::cluster::Cluster;

const TOLD: &str = "StateNotWritten";

#[test]
fn r8_1_a_state_that_cannot_be_written_holds_the_nodes_and_is_told_of_once() {
    let mut cluster = Cluster::new(6, &[("stages", "2, 100%")]);
    cluster.refuses_states = true;
    cluster.roll_out(1);
    // Refused once or twice, it is nobody's business.
    cluster.advance(2);
    assert_eq!(cluster.told(TOLD), 0);
    cluster.advance(600);
    assert_eq!(cluster.told(TOLD), 1, "{:?}", cluster.events);
    let (_, text) = cluster.events.iter().find(|(r, _)| r == TOLD).unwrap();
    assert!(
        text.ends_with("no node changes its revision before: no"),
        "{text}"
    );
    assert_eq!(cluster.counts(), [(0, 6)].into());
    // Missing pods are still made.
    let lost: Vec<Arc<str>> = cluster.pods_on("node-1");
    cluster.fake.remove_pod(&lost[0], false);
    cluster.run();
    assert_eq!(cluster.counts(), [(0, 6)].into());
    cluster.refuses_states = false;
    cluster.advance(60);
    assert_eq!(cluster.phase(1).0, STABLE);
    assert_eq!(cluster.told(TOLD), 1);
}
