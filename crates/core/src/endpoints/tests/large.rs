//! How many writes a large service causes while its pods are replaced.

use std::time::Duration;

use kennel_types::Monotonic;
use serde_json::{Value, json};

use super::super::*;
use super::fixture::Fixture;
use super::{numbered_pod, service};
use crate::tree::{list, text};

const PODS: u16 = 5_000;
/// One pod is replaced each time: the rolling update takes five minutes.
const STEP: Duration = Duration::from_millis(60);

/// The bytes of the slices that these writes store, and their number.
fn slices(writes: &[Write]) -> (usize, usize) {
    let of_slice = writes.iter().filter(|write| write.form == Form::Slice);
    let bytes = |write: &Write| match &write.operation {
        Operation::Create(body) | Operation::Update(body) => body.to_string().len(),
        Operation::Delete { .. } => 0,
    };
    let bytes: Vec<usize> = of_slice.map(bytes).collect();
    (bytes.iter().sum(), bytes.len())
}

/// Executes the writes that are due, as the API would do it at once.
fn execute(fixture: &mut Fixture) -> Vec<Write> {
    let mut all = Vec::new();
    while fixture
        .tracker
        .next_deadline()
        .is_some_and(|due| due <= fixture.now)
    {
        let writes = fixture
            .fake_api
            .writes_due(fixture.now, &mut fixture.tracker);
        for write in &writes {
            let outcome = fixture.fake_api.execute(write);
            fixture.tracker.write_finished(fixture.now, write, &outcome);
        }
        fixture
            .fake_api
            .deliver(fixture.now, &mut fixture.tracker, usize::MAX);
        all.extend(writes);
    }
    all
}

/// Each pod is deleted, and becomes ready again with another uid. Without batching, that would be 10,000 slices of 25 kB for each
/// of the nodes.
#[test]
fn n2_8_a_rolling_update_of_5000_pods_writes_each_slice_a_few_times() {
    let mut fixture = Fixture::new(Limits::default());
    let web = service(&json!({"clusterIP": "None", "ports": [{"port": 80}]}));
    fixture.tracker.service(Monotonic::START, web);
    for number in 0..PODS {
        fixture.pod(numbered_pod(number));
    }
    fixture.converge();
    assert_eq!(fixture.sizes(), [100; 50]);
    let mut writes = Vec::new();
    for number in 0..PODS {
        fixture.now = fixture.now + STEP;
        let old = numbered_pod(number);
        fixture.tracker.pod_gone(fixture.now, &old.uid);
        let new = PodFacts {
            uid: format!("new-{number}").into(),
            ..old
        };
        fixture.pod(new);
        writes.extend(execute(&mut fixture));
    }
    writes.extend(fixture.converge());
    let (bytes, count) = slices(&writes);
    // A sync each five seconds, which the pods of one or two slices change.
    assert!(count <= 200, "{count} slices");
    assert!(bytes <= 5_000_000, "{bytes} bytes");
    let listed = |slice: &&Value| slice["endpoints"].as_array().unwrap().len();
    let endpoints: usize = fixture.fake_api.slices().iter().map(listed).sum();
    assert_eq!(endpoints, usize::from(PODS));
    let slices = fixture.fake_api.slices();
    let mut uids = slices
        .iter()
        .flat_map(|slice| list(slice, "endpoints"))
        .map(|endpoint| text(endpoint, "targetRef.uid"));
    assert!(uids.all(|uid| uid.starts_with("new-")));
}

#[test]
fn n2_8_a_single_change_of_a_large_service_is_written_at_once() {
    let mut fixture = Fixture::new(Limits::default());
    let web = service(&json!({"ports": [{"port": 80}]}));
    fixture.tracker.service(Monotonic::START, web);
    for number in 0..PODS {
        fixture.pod(numbered_pod(number));
    }
    fixture.converge();
    fixture.now = fixture.now + MAX_SYNC_INTERVAL;
    fixture.tracker.pod_gone(fixture.now, &numbered_pod(7).uid);
    let due = fixture.tracker.next_deadline();
    assert_eq!(due, Some(fixture.now + BATCH_PERIOD));
}
