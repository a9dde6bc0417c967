//! A controller that is killed at any instant, and its successor, which resumes.

use std::time::Duration;

use kennel_client::fence::Fence;
use kennel_testkit::faulty::Faults;

use crate::daemonset_controller::fixture::Fixture;

const NODES: u16 = 12;
/// How long a controller lives at most: about as long as a rollout here takes.
const LIFE_MS: u64 = 60;
const LIVES: usize = 25;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_comes_after_a_killed_controller_finds_its_way() {
    let fixture = Fixture::new(NODES).await;
    let mut random = fastrand::Rng::with_seed(kennel_testkit::fresh_seed());
    fixture.create("zero").await;
    // The pods that the last controller to be killed has asked for since the last change.
    let mut cut_off = 0;
    for life in 0..LIVES {
        let calm = Faults::none();
        let controller = fixture.controller(&calm, &Fence::open());
        // Its life is what is tried here, not something that is waited for.
        tokio::time::sleep(Duration::from_millis(random.u64(1..LIFE_MS))).await;
        let before = created(&calm);
        if life % 5 == 4 {
            fixture.set_image(&format!("image-{life}")).await;
        }
        controller.abort();
        cut_off = created(&calm) - before;
    }
    let controller = fixture.controller(&Faults::none(), &Fence::open());
    let last = format!("image-{}", LIVES - 1);
    fixture.settled(&last).await;
    // The last requests of the killed controller may arrive after its successor has looked around: so many pods may be one
    // too many for a moment, and no more.
    let (made, nodes) = (fixture.ledger.ever(&last), usize::from(NODES));
    assert!(
        (nodes..=nodes + cut_off).contains(&made),
        "{made} pods made, {cut_off} of them may be too many"
    );
    controller.abort();
}

/// How many pods a controller has asked for.
fn created(faults: &Faults) -> usize {
    let written = faults.written().into_iter();
    let creates =
        written.filter(|one| one.method == http::Method::POST && one.path.ends_with("/pods"));
    creates.count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_in_peace_changes_nothing() {
    let fixture = Fixture::new(NODES).await;
    let calm = Faults::none();
    let first = fixture.controller(&calm, &Fence::open());
    fixture.create("one").await;
    fixture.settled("one").await;
    first.abort();
    let deleted = calm.written().into_iter();
    let deleted = deleted.filter(|written| written.method == http::Method::DELETE);
    assert_eq!(deleted.count(), 0, "nothing is made that is not needed");
    let before = fixture.sets().get("agent").await.unwrap();
    let faults = Faults::none();
    let second = fixture.controller(&faults, &Fence::open());
    // The second one is at work when it has made the pod that is missing now.
    let pods = fixture.pods();
    let one = pods
        .list(&kube::api::ListParams::default())
        .await
        .unwrap()
        .items;
    let name = one[0].metadata.name.as_deref().unwrap();
    pods.delete(name, &kube::api::DeleteParams::default())
        .await
        .unwrap();
    fixture.settled("one").await;
    let nodes = usize::from(NODES);
    assert_eq!(
        fixture.ledger.ever("one"),
        nodes + 1,
        "only what was deleted is replaced"
    );
    let after = fixture.sets().get("agent").await.unwrap();
    assert_eq!(before.metadata.generation, after.metadata.generation);
    let made = faults.written().into_iter();
    let made = made.filter(|written| written.path.ends_with("/controllerrevisions"));
    assert_eq!(made.count(), 0, "the revision is known");
    second.abort();
}
