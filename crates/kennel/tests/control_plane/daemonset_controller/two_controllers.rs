//! Two controllers at once: with a lease, and, by mistake, without.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Event;
use kennel_client::fence::Fence;
use kennel_client::lease::{Elector, Lease, Timing};
use kennel_client::write::Writer;
use kennel_testkit::faulty::Faults;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::daemonset_controller::fixture::{Fixture, run};

const NODES: u16 = 12;

/// As patient as others, but in less time.
const TIMING: Timing = Timing {
    duration: Duration::from_secs(2),
    renew_deadline: Duration::from_millis(1200),
    retry: Duration::from_millis(200),
};

const EVENTS: &str = "/api/v1/namespaces/default/events";

/// A controller that takes part in an election.
fn candidate(
    fixture: &Fixture,
    identity: &str,
    faults: &Faults,
    stop: &CancellationToken,
) -> JoinHandle<()> {
    let client = faults.client(fixture.server.api(), "controller");
    let lease = Lease {
        namespace: "kube-system".into(),
        name: "daemonset-controller".into(),
        identity: identity.into(),
        timing: TIMING,
    };
    let fence = Fence::closed();
    let writer = Writer::new(client.clone(), Fence::open());
    let elector = Elector::new(lease, writer, fence.clone());
    let stop = stop.clone();
    tokio::spawn(async move {
        let term = || Box::pin(run(client.clone(), fence.clone(), stop.clone()));
        elector.lead(&stop, term).await.unwrap();
    })
}

/// When a controller wrote anything but its lease: first and last.
fn wrote(faults: &Faults) -> Option<(Instant, Instant)> {
    let written = faults.written().into_iter();
    let mut written = written.filter(|written| !written.path.contains("/leases"));
    let first = written.next()?;
    let last = written.next_back().map_or(first.at, |last| last.at);
    Some((first.at, last))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_loses_the_lease_has_stopped_writing_when_the_next_begins() {
    let fixture = Fixture::new(NODES).await;
    let (one, two) = (Faults::none(), Faults::none());
    let stop = CancellationToken::new();
    fixture.create("zero").await;
    let first = candidate(&fixture, "one", &one, &stop);
    fixture.settled("zero").await;
    let second = candidate(&fixture, "two", &two, &stop);
    // The first one can do everything but renew its lease; and there is work all the time.
    one.cut_off("/leases");
    let mut round = 0;
    while wrote(&two).is_none() {
        fixture.set_image(&format!("image-{round}")).await;
        round += 1;
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(round < 3000, "nobody takes over");
    }
    fixture.set_image("last").await;
    fixture.settled("last").await;
    let (_, last) = wrote(&one).unwrap();
    let (begun, _) = wrote(&two).unwrap();
    assert!(last < begun, "both wrote for {:?}", last - begun);
    assert!(
        begun - last > Duration::from_millis(500),
        "what had begun had time to end"
    );
    assert_eq!(fixture.ledger.crowded(), 1);
    stop.cancel();
    first.await.unwrap();
    second.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_is_stopped_hands_over_at_once() {
    let fixture = Fixture::new(NODES).await;
    let (one, two) = (Faults::none(), Faults::none());
    let (stop_one, stop_two) = (CancellationToken::new(), CancellationToken::new());
    fixture.create("one").await;
    let first = candidate(&fixture, "one", &one, &stop_one);
    fixture.settled("one").await;
    let second = candidate(&fixture, "two", &two, &stop_two);
    stop_one.cancel();
    first.await.unwrap();
    fixture.set_image("two").await;
    fixture.settled("two").await;
    assert!(wrote(&one).unwrap().1 < wrote(&two).unwrap().0);
    assert_eq!(fixture.ledger.ever("two"), usize::from(NODES));
    stop_two.cancel();
    second.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_without_a_lease_come_to_rest_all_the_same() {
    let fixture = Fixture::new(NODES).await;
    let (one, two) = (Faults::none(), Faults::none());
    let controllers = [&one, &two].map(|faults| fixture.controller(faults, &Fence::open()));
    fixture.create("one").await;
    fixture.settled("one").await;
    fixture.set_image("two").await;
    fixture.settled("two").await;
    // At rest: neither undoes what the other has done, for ever.
    let writes = || one.written().len() + two.written().len();
    fixture
        .until(|| async {
            let before = writes();
            tokio::time::sleep(Duration::from_millis(300)).await;
            (writes() != before).then(|| "they do not come to rest".to_owned())
        })
        .await;
    fixture.settled("two").await;
    for controller in controllers {
        controller.abort();
    }
}

/// The messages of events that say that another controller is at work.
async fn alarms(fixture: &Fixture) -> Vec<String> {
    let events: Api<Event> = Api::default_namespaced(fixture.server.client("admin"));
    let fields = "involvedObject.kind=DaemonSet,reason=ConflictingController";
    let events = events.list(&ListParams::default().fields(fields)).await;
    let messages = events.unwrap().items.into_iter();
    messages.filter_map(|event| event.message).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_without_a_lease_notice_each_other() {
    let fixture = Fixture::new(NODES).await;
    let none = [Faults::none(), Faults::none()];
    let controllers = none
        .each_ref()
        .map(|faults| fixture.controller(faults, &Fence::open()));
    fixture.create("one").await;
    let image = AtomicU32::new(0);
    fixture
        .until(|| async {
            // There is always something to do for both.
            let image = image.fetch_add(1, Ordering::SeqCst);
            fixture.set_image(&format!("image-{image}")).await;
            let alarms = alarms(&fixture).await;
            let both = alarms.len() >= 2;
            (!both).then(|| format!("not both have noticed: {alarms:?}"))
        })
        .await;
    for alarm in alarms(&fixture).await {
        let who = "another controller acts on this DaemonSet, too: it ";
        assert!(alarm.starts_with(who), "{alarm}");
        assert!(alarm.contains(". Stop "), "{alarm}");
    }
    for controller in controllers {
        controller.abort();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r8_1_two_without_a_lease_take_every_stage_once() {
    let fixture = Fixture::new(4).await;
    let (one, two) = (Faults::none(), Faults::none());
    let controllers = [&one, &two].map(|faults| fixture.controller(faults, &Fence::open()));
    fixture.create("one").await;
    fixture.settled("one").await;
    let stages = json!({"rollout.kennel.dev/stages": "1 1s, 50% 1s, 100% 1s"});
    let policy = Patch::Merge(json!({"metadata": {"annotations": stages}}));
    let sets = fixture.sets();
    let patched = sets.patch("agent", &PatchParams::default(), &policy).await;
    patched.unwrap();
    fixture.set_image("two").await;
    fixture.settled("two").await;
    let events: Api<Event> = Api::default_namespaced(fixture.server.client("events"));
    let told = || async {
        let all = events.list(&ListParams::default()).await.unwrap();
        let told = all.items.into_iter().filter(|event| {
            let reasons = ["RolloutStarted", "StageStarted", "RolloutComplete"];
            reasons.contains(&event.reason.as_deref().unwrap_or_default())
        });
        let mut told: Vec<(String, i32)> = told
            .map(|event| {
                let text = event.message.unwrap_or_default();
                let text = text
                    .split_once(": ")
                    .map_or(text.as_str(), |(_, text)| text);
                (text.to_owned(), event.count.unwrap_or(1))
            })
            .collect();
        told.sort();
        told
    };
    let once = |text: &str| (text.to_owned(), 1);
    let stages = [
        "stage 1 of 3 (1 1s)",
        "stage 2 of 3 (50% 1s)",
        "stage 3 of 3 (100% 1s)",
    ];
    let stages = stages.map(once);
    fixture
        .until(|| async {
            let told = told().await;
            let all = stages.iter().all(|stage| told.contains(stage));
            (!all || told.len() != 4).then(|| format!("{told:?}"))
        })
        .await;
    for controller in controllers {
        controller.abort();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deletions_by_people_restarts_and_lost_answers_are_no_other_controller() {
    let fixture = Fixture::new(NODES).await;
    fixture.create("zero").await;
    let seed = kennel_testkit::fresh_seed();
    let mut random = fastrand::Rng::with_seed(seed);
    for life in 0..10 {
        let controller =
            fixture.controller(&Faults::seeded(seed.wrapping_add(life)), &Fence::open());
        // A life that ends at any instant is what is tried here.
        tokio::time::sleep(Duration::from_millis(random.u64(20..200))).await;
        fixture.set_image(&format!("image-{life}")).await;
        controller.abort();
    }
    let faults = Faults::seeded(seed.wrapping_add(11));
    let controller = fixture.controller(&faults, &Fence::open());
    fixture.set_image("last").await;
    fixture.settled("last").await;
    let everything = DeleteParams::default();
    let pods = fixture.pods();
    let deleted = pods
        .delete_collection(&everything, &ListParams::default())
        .await;
    deleted.unwrap();
    fixture.settled("last").await;
    // It has looked at the events after that, and found nothing.
    let before = faults.read(EVENTS);
    fixture
        .until(|| async {
            let looked = faults.read(EVENTS) > before;
            (!looked).then(|| "it does not look for other controllers".to_owned())
        })
        .await;
    assert_eq!(alarms(&fixture).await, Vec::<String>::new());
    controller.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn upstreams_controller_is_noticed_by_its_pods_and_events() {
    let fixture = Fixture::new(NODES).await;
    let faults = Faults::none();
    let controller = fixture.controller(&faults, &Fence::open());
    fixture.create("one").await;
    fixture.settled("one").await;
    let set = fixture.sets().get("agent").await.unwrap();
    let owner = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent",
        "uid": set.metadata.uid, "controller": true, "blockOwnerDeletion": true});
    let pod = |name: &str| {
        let pod = json!({
            "metadata": {"name": name, "generateName": "agent-", "labels": {"app": "agent"},
                         "ownerReferences": [owner]},
            "spec": {"nodeName": "sim-1", "containers": [{"name": "agent", "image": "one"}]}});
        serde_json::from_value(pod).unwrap()
    };
    // A copied pod alone is no sign of another controller.
    let (pods, create) = (fixture.pods(), PostParams::default());
    pods.create(&create, &pod("agent-copied")).await.unwrap();
    fixture
        .until(|| async {
            let looked = faults.read(EVENTS) > 0;
            (!looked).then(|| "it does not look for events".to_owned())
        })
        .await;
    assert_eq!(alarms(&fixture).await, Vec::<String>::new());
    pods.create(&create, &pod("agent-other")).await.unwrap();
    let event = json!({
        "metadata": {"name": "agent.1"}, "type": "Normal", "reason": "SuccessfulCreate",
        "message": "Created pod: agent-other", "count": 1,
        "involvedObject": {"apiVersion": "apps/v1", "kind": "DaemonSet", "namespace": "default",
                           "name": "agent", "uid": set.metadata.uid},
        "source": {"component": "daemonset-controller"},
        "reportingComponent": "daemonset-controller", "reportingInstance": ""});
    let events: Api<Event> = Api::default_namespaced(fixture.server.client("upstream"));
    let event = serde_json::from_value(event).unwrap();
    events.create(&create, &event).await.unwrap();
    fixture
        .until(|| async {
            let found = alarms(&fixture).await;
            (found.len() != 1).then(|| format!("{found:?}"))
        })
        .await;
    let expected = "another controller acts on this DaemonSet, too: it created agent-other. Switch off the DaemonSet \
                    controller of kube-controller-manager (--controllers=*,-daemonset-controller), or run this one with \
                    --assist";
    assert_eq!(alarms(&fixture).await, [expected]);
    controller.abort();
}
