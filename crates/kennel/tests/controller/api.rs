//! An API that goes wrong in every way: all ends well, and nothing is done twice.

use kennel_client::fence::Fence;
use kennel_testkit::faulty::Faults;
use serde_json::json;

use crate::world::World;

const NODES: u16 = 12;

async fn survives(seed: u64) {
    let world = World::new(NODES).await;
    let faults = Faults::seeded(seed);
    let controller = world.controller(&faults, &Fence::open());
    world.create("one").await;
    world.settled("one").await;
    world.set_image("two").await;
    world.settled("two").await;
    world.set_image("one").await;
    faults.end();
    world.settled("one").await;
    let nodes = usize::from(NODES);
    assert_eq!(
        world.ledger.crowded(),
        1,
        "seed {seed}: two pods on one node"
    );
    assert_eq!(
        world.ledger.ever("two"),
        nodes,
        "seed {seed}: needless pods"
    );
    assert_eq!(
        world.ledger.ever("one"),
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
    let world = World::new(NODES).await;
    let faults = Faults::seeded(4);
    let controller = world.controller(&faults, &Fence::open());
    let strategy = json!({"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 0}});
    world.create_with("one", &strategy).await;
    world.settled("one").await;
    world.set_image("two").await;
    world.settled("two").await;
    assert!(world.ledger.crowded() <= 2);
    assert_eq!(
        world.ledger.ever("two"),
        usize::from(NODES),
        "needless pods"
    );
    controller.abort();
}
