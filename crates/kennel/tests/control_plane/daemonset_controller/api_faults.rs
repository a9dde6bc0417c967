//! An API that fails in every way: the controller converges and repeats no side effect.

use kennel_client::fence::Fence;
use kennel_testkit::faulty::Faults;
use serde_json::json;

use crate::daemonset_controller::fixture::Fixture;

const NODES: u16 = 12;

async fn survives(seed: u64) {
    let fixture = Fixture::new(NODES).await;
    let faults = Faults::seeded(seed);
    let controller = fixture.controller(&faults, &Fence::open());
    fixture.create("one").await;
    fixture.settled("one").await;
    fixture.set_image("two").await;
    fixture.settled("two").await;
    fixture.set_image("one").await;
    faults.end();
    fixture.settled("one").await;
    let nodes = usize::from(NODES);
    assert_eq!(
        fixture.ledger.crowded(),
        1,
        "seed {seed}: two pods on one node"
    );
    assert_eq!(
        fixture.ledger.ever("two"),
        nodes,
        "seed {seed}: needless pods"
    );
    assert_eq!(
        fixture.ledger.ever("one"),
        2 * nodes,
        "seed {seed}: needless pods"
    );
    controller.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_lost_answers_and_broken_watches_cost_time_and_nothing_else() {
    for seed in [1, 2] {
        survives(seed).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_surge_through_all_this_has_at_most_two_pods_on_a_node() {
    let fixture = Fixture::new(NODES).await;
    let faults = Faults::seeded(4);
    let controller = fixture.controller(&faults, &Fence::open());
    let strategy = json!({"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 0}});
    fixture.create_with("one", &strategy).await;
    fixture.settled("one").await;
    fixture.set_image("two").await;
    fixture.settled("two").await;
    assert!(fixture.ledger.crowded() <= 2);
    assert_eq!(
        fixture.ledger.ever("two"),
        usize::from(NODES),
        "needless pods"
    );
    controller.abort();
}
