//! The forms that upstream gives slices and Endpoints, and when they are written.

use serde_json::{Value, json};

use super::super::*;
use super::api::Api;
use super::{named_service, pod, service};

const BOTH: Forms = Forms {
    slices: true,
    endpoints: true,
};

/// A tracker, its API, and its clock.
struct World {
    tracker: Tracker,
    api: Api,
    now: i64,
}

impl World {
    fn new(limits: Limits) -> Self {
        let mut tracker = Tracker::new(BOTH, limits);
        tracker.node(0, &"n1".into(), Some("z1".into()));
        Self {
            tracker,
            api: Api::default(),
            now: 0,
        }
    }

    fn of(service: ServiceFacts, pods: impl IntoIterator<Item = PodFacts>) -> Self {
        let mut world = Self::new(Limits::default());
        world.tracker.service(0, service);
        for pod in pods {
            world.tracker.pod(0, pod);
        }
        world.settle();
        world
    }

    fn settle(&mut self) -> Vec<Write> {
        self.api.settle(&mut self.now, &mut self.tracker)
    }

    fn pod(&mut self, pod: PodFacts) -> &mut Self {
        self.tracker.pod(self.now, pod);
        self
    }

    fn slice(&self) -> &Value {
        assert_eq!(self.api.slices().len(), 1);
        self.api.slices()[0]
    }

    fn endpoints(&self) -> &Value {
        assert_eq!(self.api.endpoints().len(), 1);
        self.api.endpoints()[0]
    }

    /// How many endpoints each slice has, largest first.
    fn sizes(&self) -> Vec<usize> {
        let slices = self.api.slices();
        let count = |slice: &&Value| slice["endpoints"].as_array().unwrap().len();
        let mut sizes: Vec<usize> = slices.iter().map(count).collect();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        sizes
    }
}

/// What the writes do, shortly.
fn verbs(writes: &[Write]) -> Vec<&'static str> {
    let verb = |write: &Write| match write.what {
        What::CreateSlice(_) => "create slice",
        What::UpdateSlice(_) => "update slice",
        What::DeleteSlice { .. } => "delete slice",
        What::CreateEndpoints(_) => "create endpoints",
        What::UpdateEndpoints(_) => "update endpoints",
        What::DeleteEndpoints { .. } => "delete endpoints",
    };
    writes.iter().map(verb).collect()
}

#[test]
fn a_slice_has_upstreams_form() {
    let spec = json!({"clusterIP": "None", "ports": [
        {"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP", "appProtocol": "h2c"}]});
    let mut facts = service(&spec);
    facts.labels.insert("team".into(), "a".into());
    let mut member = pod(1);
    (member.hostname, member.subdomain) = (Some("host".into()), Some("web".into()));
    let world = World::of(facts, [member]);
    assert_eq!(
        *world.slice(),
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {
                "name": "web-00001", "generateName": "web-", "namespace": "ns",
                "uid": "o1", "resourceVersion": "1",
                "labels": {
                    "team": "a", "kubernetes.io/service-name": "web",
                    "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
                    "service.kubernetes.io/headless": ""},
                "annotations": {"endpoints.kubernetes.io/last-change-trigger-time": "t0"},
                "ownerReferences": [{
                    "apiVersion": "v1", "kind": "Service", "name": "web", "uid": "uid-web",
                    "controller": true, "blockOwnerDeletion": true}]},
            "addressType": "IPv4",
            "endpoints": [{
                "addresses": ["10.0.0.1"], "hostname": "host", "nodeName": "n1", "zone": "z1",
                "conditions": {"ready": true, "serving": true, "terminating": false},
                "targetRef": {"kind": "Pod", "namespace": "ns", "name": "p001", "uid": "u001"}}],
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP", "appProtocol": "h2c"}],
        })
    );
}

#[test]
fn endpoints_have_upstreams_form() {
    let spec = json!({"clusterIP": "10.96.0.9", "ports": [{"port": 80, "targetPort": 8080}]});
    let mut waiting = pod(2);
    waiting.ready = false;
    let mut leaving = pod(3);
    leaving.terminating = true;
    let world = World::of(service(&spec), [waiting, pod(1), leaving]);
    let target =
        |name: &str, uid: &str| json!({"kind": "Pod", "namespace": "ns", "name": name, "uid": uid});
    assert_eq!(
        world.endpoints()["subsets"],
        json!([{
            "addresses": [{"ip": "10.0.0.1", "nodeName": "n1", "targetRef": target("p001", "u001")}],
            "notReadyAddresses": [
                {"ip": "10.0.0.2", "nodeName": "n1", "targetRef": target("p002", "u002")}],
            "ports": [{"port": 8080, "protocol": "TCP"}],
        }])
    );
    let metadata = &world.endpoints()["metadata"];
    assert_eq!(metadata["name"], "web");
    let labels = json!({"endpoints.kubernetes.io/managed-by": "endpoint-controller"});
    assert_eq!(metadata["labels"], labels);
}

/// The conditions of the one endpoint: ready, serving, terminating; and where Endpoints list it.
fn check_conditions(
    (ready, terminating, publish): (bool, bool, bool),
    conditions: [bool; 3],
    side: Option<&str>,
) {
    let spec = json!({"publishNotReadyAddresses": publish, "ports": [{"port": 80}]});
    let member = PodFacts {
        ready,
        terminating,
        ..pod(1)
    };
    let world = World::of(service(&spec), [member]);
    let said = &world.slice()["endpoints"][0]["conditions"];
    let named = ["ready", "serving", "terminating"].map(|name| said[name].as_bool().unwrap());
    assert_eq!(named, conditions);
    let subset = &world.endpoints()["subsets"][0];
    for name in ["addresses", "notReadyAddresses"] {
        assert_eq!(
            subset[name].is_array(),
            side == Some(name),
            "{name}: {subset}"
        );
    }
}

#[test]
fn readiness_is_said_as_upstream_says_it() {
    let ready = Some("addresses");
    check_conditions((true, false, false), [true, true, false], ready);
    check_conditions(
        (false, false, false),
        [false, false, false],
        Some("notReadyAddresses"),
    );
    check_conditions((true, true, false), [false, true, true], None);
    check_conditions((false, false, true), [true, false, false], ready);
    check_conditions((true, true, true), [true, true, true], ready);
}

#[test]
fn pods_that_cannot_be_reached_are_left_out() {
    let without_address = PodFacts {
        addresses: Vec::new(),
        ..pod(1)
    };
    let ended = PodFacts {
        ended: true,
        ..pod(2)
    };
    let nowhere = PodFacts {
        node: Some("ghost".into()),
        ..pod(3)
    };
    let other_family = PodFacts {
        addresses: vec!["fd00::1".parse().unwrap()],
        ..pod(4)
    };
    let spec = json!({"ports": [{"port": 80}]});
    let pods = [without_address, ended, nowhere, other_family];
    let mut world = World::of(service(&spec), pods);
    // A service without endpoints has one slice all the same.
    assert_eq!(world.slice()["endpoints"], json!([]));
    assert_eq!(world.slice()["ports"], json!([]));
    assert!(world.endpoints()["subsets"].is_null());
    world.tracker.node(world.now, &"ghost".into(), None);
    world.settle();
    assert_eq!(world.slice()["endpoints"][0]["nodeName"], "ghost");
    assert_eq!(world.slice()["endpoints"][0]["zone"], Value::Null);
    world.tracker.node_gone(world.now, "ghost");
    world.settle();
    assert_eq!(world.slice()["endpoints"], json!([]));
}

#[test]
fn pods_with_different_ports_of_one_name_stand_in_different_slices() {
    let named = |number: u8, port: u16| PodFacts {
        ports: [NamedPort {
            name: "web".into(),
            protocol: "TCP".into(),
            number: port,
        }]
        .into(),
        ..pod(number)
    };
    let spec = json!({"ports": [{"name": "http", "port": 80, "targetPort": "web"}]});
    let without = pod(4);
    let pods = [named(1, 8080), named(2, 9090), named(3, 8080), without];
    let world = World::of(service(&spec), pods);
    let mut ports: Vec<(Value, usize)> = Vec::new();
    for slice in world.api.slices() {
        let count = slice["endpoints"].as_array().unwrap().len();
        ports.push((slice["ports"][0]["port"].clone(), count));
    }
    ports.sort_by_key(|(port, _)| port.as_u64());
    assert_eq!(
        ports,
        [(Value::Null, 1), (json!(8080), 2), (json!(9090), 1)]
    );
    let subsets = world.endpoints()["subsets"].as_array().unwrap().len();
    assert_eq!(subsets, 2, "Endpoints list none without a port");
}

#[test]
fn both_families_have_slices_of_their_own() {
    let spec = json!({"ipFamilies": ["IPv6", "IPv4"], "clusterIP": "None"});
    let mut member = pod(1);
    member.addresses.push("fd00::1".parse().unwrap());
    let world = World::of(service(&spec), [member]);
    let families = world.api.slices();
    let mut families: Vec<String> = families
        .iter()
        .map(|slice| {
            format!(
                "{} {}",
                slice["addressType"], slice["endpoints"][0]["addresses"][0]
            )
        })
        .collect();
    families.sort();
    assert_eq!(families, [r#""IPv4" "10.0.0.1""#, r#""IPv6" "fd00::1""#]);
    let address = &world.endpoints()["subsets"][0]["addresses"][0]["ip"];
    assert_eq!(address, "fd00::1", "the service's first family");
}

#[test]
fn services_without_selector_and_aliases_are_left_alone() {
    for spec in [
        json!({"selector": {}, "ports": [{"port": 80}]}),
        json!({"type": "ExternalName", "externalName": "example.com"}),
    ] {
        let world = World::of(service(&spec), [pod(1)]);
        assert_eq!(world.api.objects.len(), 0, "{spec}");
    }
    // What somebody else made for it stays.
    let mut world = World::of(service(&json!({"selector": {}})), []);
    let endpoints = json!({"metadata": {"name": "web", "namespace": "ns"},
        "subsets": [{"addresses": [{"ip": "192.0.2.1"}]}]});
    world.api.put(false, endpoints);
    assert_eq!(world.settle(), []);
}

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
fn endpoints_are_cut_at_their_limit_and_say_so() {
    let over = "endpoints.kubernetes.io/over-capacity";
    let mut world = World::new(Limits {
        slice: 100,
        endpoints: 4,
    });
    world
        .tracker
        .service(0, service(&json!({"ports": [{"port": 80}]})));
    for number in 1..=3 {
        world.pod(pod(number));
    }
    for number in 4..=6 {
        world.pod(PodFacts {
            ready: false,
            ..pod(number)
        });
    }
    world.settle();
    let counts = |world: &World| {
        let subset = &world.endpoints()["subsets"][0];
        ["addresses", "notReadyAddresses"].map(|side| subset[side].as_array().map_or(0, Vec::len))
    };
    assert_eq!(counts(&world), [3, 1]);
    assert_eq!(
        world.endpoints()["metadata"]["annotations"][over],
        "truncated"
    );
    for number in 4..=6 {
        world.pod(pod(number));
    }
    world.settle();
    assert_eq!(counts(&world), [4, 0]);
    for number in ["u005", "u006"] {
        world.tracker.pod_gone(world.now, number);
    }
    world.settle();
    assert_eq!(counts(&world), [4, 0]);
    assert!(world.endpoints()["metadata"]["annotations"][over].is_null());
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
