//! What is written, and when: no more than what changed, and what others spoiled.

use serde_json::{Value, json};

use super::super::*;
use super::world::{World, verbs};
use super::{named_service, pod, service};

#[test]
fn a_slice_is_full_at_its_limit_and_only_what_changes_is_written() {
    let mut world = World::new(Limits {
        slice: 10,
        endpoints: 1000,
    });
    world
        .tracker
        .service(0, service(&json!({"ports": [{"port": 80}]})));
    for number in 1..=25 {
        world.pod(pod(number));
    }
    let writes = world.settle();
    assert_eq!(world.sizes(), [10, 10, 5]);
    assert_eq!(
        writes.len(),
        4,
        "each is written once: {:?}",
        verbs(&writes)
    );
    world.pod(PodFacts {
        ready: false,
        ..pod(13)
    });
    assert_eq!(verbs(&world.settle()), ["update slice", "update endpoints"]);
    world.tracker.pod_gone(world.now, "u013");
    world.pod(pod(26)).pod(pod(27));
    let writes = world.settle();
    assert_eq!(world.sizes().iter().sum::<usize>(), 26);
    assert!(writes.len() <= 3, "{:?}", verbs(&writes));
    // Labels and what nobody reads of a pod change nothing.
    let mut relabelled = pod(1);
    relabelled.labels = std::sync::Arc::new(
        [("app", "web"), ("rev", "2")]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .into(),
    );
    world.pod(relabelled);
    assert_eq!(world.settle(), []);
}

#[test]
fn what_somebody_spoiled_is_repaired() {
    let mut world = World::of(service(&json!({"ports": [{"port": 80}]})), [pod(1), pod(2)]);
    let right = world.slice().clone();
    let spoil: [fn(&mut Value); 6] = [
        |slice| slice["endpoints"] = json!([]),
        |slice| slice["endpoints"][0]["addresses"] = json!(["192.0.2.1"]),
        |slice| slice["endpoints"][0]["hints"] = json!({"forZones": [{"name": "z"}]}),
        |slice| slice["ports"] = json!([{"name": "x", "port": 1, "protocol": "UDP"}]),
        |slice| slice["metadata"]["labels"]["extra"] = json!("x"),
        |slice| slice["metadata"]["ownerReferences"] = json!([]),
    ];
    for spoil in spoil {
        let mut slice = world.slice().clone();
        spoil(&mut slice);
        world.api.put(true, slice);
        world.settle();
        for part in ["endpoints", "ports"] {
            assert_eq!(world.slice()[part], right[part]);
        }
        for part in ["labels", "ownerReferences"] {
            assert_eq!(world.slice()["metadata"][part], right["metadata"][part]);
        }
    }
    let name = world.slice()["metadata"]["name"]
        .as_str()
        .unwrap()
        .to_owned();
    world.api.delete(true, &name);
    world.settle();
    assert_eq!(world.slice()["endpoints"], right["endpoints"]);
    // One that is not ours any more is replaced.
    let mut slice = world.slice().clone();
    slice["metadata"]["labels"] = json!({});
    world.api.put(true, slice);
    world.settle();
    assert_eq!(world.api.slices().len(), 2);
    let mut endpoints = world.endpoints().clone();
    endpoints["subsets"] = json!([]);
    world.api.put(false, endpoints);
    assert_eq!(verbs(&world.settle()), ["update endpoints"]);
    world.api.delete(false, "web");
    assert_eq!(verbs(&world.settle()), ["create endpoints"]);
}

#[test]
fn what_others_noted_on_it_stays() {
    let mut world = World::of(service(&json!({"ports": [{"port": 80}]})), [pod(1)]);
    let mut slice = world.slice().clone();
    slice["metadata"]["annotations"] = json!({"note": "mine"});
    world.api.put(true, slice);
    world.pod(PodFacts {
        ready: false,
        ready_changed: Some(500),
        ..pod(1)
    });
    world.settle();
    let trigger = "endpoints.kubernetes.io/last-change-trigger-time";
    let expected = json!({"note": "mine", trigger: "t500"});
    assert_eq!(world.slice()["metadata"]["annotations"], expected);
}

#[test]
fn a_service_takes_what_is_its_own_along_and_a_new_selector_its_old_pods() {
    let spec = json!({"ports": [{"port": 80}]});
    let mut world = World::of(service(&spec), [pod(1)]);
    let other = json!({"selector": {"app": "other"}, "ports": [{"port": 80}]});
    world.tracker.service(world.now, service(&other));
    world.settle();
    assert_eq!(world.slice()["endpoints"], json!([]));
    let mut moved = pod(2);
    moved.labels = std::sync::Arc::new([("app".to_owned(), "other".to_owned())].into());
    world.pod(moved);
    world.settle();
    assert_eq!(world.slice()["endpoints"][0]["targetRef"]["name"], "p002");
    // A second service has nothing to do with it.
    world
        .tracker
        .service(world.now, named_service("second", &spec));
    world.settle();
    assert_eq!(
        (world.api.slices().len(), world.api.endpoints().len()),
        (2, 2)
    );
    let (namespace, web) = ("ns".into(), "web".into());
    world
        .tracker
        .service_gone(world.now, &namespace, &web, "another uid");
    assert_eq!(world.settle(), []);
    world
        .tracker
        .service_gone(world.now, &namespace, &web, "uid-web");
    assert_eq!(verbs(&world.settle()), ["delete slice", "delete endpoints"]);
    assert_eq!(
        world.slice()["metadata"]["labels"]["kubernetes.io/service-name"],
        "second"
    );
}

/// Whatever order the writes of one look are carried out in, nobody is missing in between.
#[test]
fn pods_that_move_to_other_slices_are_never_in_none() {
    let mut world = World::new(Limits {
        slice: 2,
        endpoints: 1000,
    });
    let spec = |port: u16| service(&json!({"ports": [{"port": 80, "targetPort": port}]}));
    world.tracker.service(0, spec(80));
    for number in 1..=5 {
        world.pod(pod(number));
    }
    world.settle();
    world.tracker.service(world.now, spec(81));
    let mut deletions = 0;
    while let Some(due) = world.tracker.next_deadline() {
        world.now = due.max(world.now);
        let mut writes = world.api.asked(world.now, &mut world.tracker);
        writes.sort_by_key(|write| !write.what.is_deletion());
        for write in writes {
            deletions += usize::from(write.what.is_deletion());
            let outcome = world.api.carry_out(&write);
            world.tracker.ended(world.now, &write, &outcome);
            let slices = world.api.slices();
            let listed = slices
                .iter()
                .flat_map(|slice| facts::items(&slice["endpoints"]));
            let pods: std::collections::BTreeSet<&str> = listed
                .filter_map(|endpoint| endpoint["targetRef"]["name"].as_str())
                .collect();
            assert_eq!(pods.len(), 5, "after {:?}", verbs(&[write]));
        }
        world.api.tell(world.now, &mut world.tracker, usize::MAX);
    }
    assert_eq!(deletions, 3);
    assert_eq!(world.sizes(), [2, 2, 1]);
}

/// Nothing is taken away as long as what replaces it cannot be written.
#[test]
fn old_slices_stay_until_the_new_ones_are_there() {
    let spec = |port: u16| service(&json!({"ports": [{"port": 80, "targetPort": port}]}));
    let mut world = World::of(spec(80), [pod(1)]);
    world.tracker.service(world.now, spec(81));
    for _ in 0..5 {
        world.now = world.tracker.next_deadline().unwrap();
        for write in world.api.asked(world.now, &mut world.tracker) {
            assert!(!write.what.is_deletion(), "{write:?}");
            world.tracker.ended(world.now, &write, &Outcome::Failed);
        }
    }
    world.settle();
    assert_eq!(world.slice()["ports"][0]["port"], 81);
}

#[test]
fn a_crowd_is_gathered_into_a_few_writes() {
    let mut world = World::of(service(&json!({"ports": [{"port": 80}]})), []);
    let begin = world.now;
    let mut writes = Vec::new();
    for number in 1..=200_u8 {
        world.now = begin + i64::from(number) * 15;
        world.tracker.pod(world.now, pod(number));
        if world
            .tracker
            .next_deadline()
            .is_some_and(|due| due <= world.now)
        {
            for write in world.api.asked(world.now, &mut world.tracker) {
                let outcome = world.api.carry_out(&write);
                world.tracker.ended(world.now, &write, &outcome);
                writes.push(write);
            }
        }
    }
    writes.extend(world.settle());
    assert_eq!(world.sizes().iter().sum::<usize>(), 200);
    let of_endpoints = verbs(&writes)
        .iter()
        .filter(|v| v.ends_with("endpoints"))
        .count();
    assert!(of_endpoints <= 5, "{of_endpoints} in three seconds");
    assert!(writes.len() <= 14, "{:?}", verbs(&writes));
}

#[test]
fn a_namespace_that_goes_away_is_left_in_peace() {
    let mut world = World::new(Limits::default());
    world
        .tracker
        .service(0, service(&json!({"ports": [{"port": 80}]})));
    let due = world.tracker.next_deadline().unwrap();
    for write in world.api.asked(due, &mut world.tracker) {
        world.tracker.ended(due, &write, &Outcome::Pointless);
    }
    assert_eq!(world.tracker.next_deadline(), None);
    // If it stays after all, the next change brings everything.
    world.pod(pod(1));
    world.settle();
    assert_eq!(world.sizes(), [1]);
}
