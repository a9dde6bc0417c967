//! Random histories: in any order of events, with failed writes and lost responses, the written objects finally equal
//! those computed from scratch.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use std::time::Duration;

use fastrand::Rng;
use kennel_test_support::with_seeds;
use kennel_types::{Identity, Monotonic, Timestamp};
use serde_json::{Value, json};

use super::super::*;
use super::fake_api::FakeApi;
use super::{named_service, pod};
use crate::tree::{list, text_map};

const LIMITS: Limits = Limits {
    slice: 3,
    endpoints: 5,
};
const FORMS: Forms = Forms {
    slices: true,
    endpoints: true,
};

/// The objects, apart from those that the tracker writes.
#[derive(Default)]
struct Expected {
    pods: BTreeMap<Uid, PodFacts>,
    services: BTreeMap<Arc<str>, ServiceFacts>,
    nodes: BTreeSet<Arc<str>>,
    uids: u32,
}

fn random_pod(rng: &mut Rng) -> PodFacts {
    let number = rng.u8(1..25);
    let mut labels = vec![(
        "app".to_owned(),
        rng.choice(["web", "db"]).unwrap().to_owned(),
    )];
    if rng.bool() {
        labels.push(("tier".to_owned(), "node".to_owned()));
    }
    let mut facts = pod(number);
    facts.labels = Arc::new(labels.into_iter().collect());
    facts.node = Some(rng.choice(["n1", "n2"]).unwrap().into());
    facts.ready = rng.u8(0..4) > 0;
    facts.ready_changed = Some(Timestamp::from_secs(rng.i64(0..50)));
    facts.terminating = rng.u8(0..8) == 0;
    facts.terminal = rng.u8(0..12) == 0;
    if rng.u8(0..8) == 0 {
        facts.addresses.clear();
    } else if rng.bool() {
        facts
            .addresses
            .push(format!("fd00::{number}").parse().unwrap());
    }
    if rng.bool() {
        let port = NamedPort {
            name: "web".into(),
            protocol: "TCP".into(),
            number: rng.u16(1..3),
        };
        facts.ports = [port].into();
    }
    facts
}

fn random_service(rng: &mut Rng, uid: u32) -> ServiceFacts {
    let name = rng.choice(["a", "b", "c"]).unwrap();
    let selector = match rng.u8(0..8) {
        0 => json!({}),
        1..3 => json!({"app": "db"}),
        3..5 => json!({"app": "web", "tier": "node"}),
        _ => json!({"app": "web"}),
    };
    let families = rng
        .choice([json!(["IPv4"]), json!(["IPv4", "IPv6"])])
        .unwrap();
    let target = rng.choice([json!(80), json!("web")]).unwrap();
    let distribution = ["", "PreferSameNode", "PreferClose"][uid as usize % 3];
    let spec = json!({
        "selector": selector, "ipFamilies": families,
        "clusterIP": rng.choice(["None", "10.96.0.1"]).unwrap(),
        "publishNotReadyAddresses": rng.u8(0..4) == 0,
        "trafficDistribution": distribution,
        "ports": [{"name": "p", "port": 80, "targetPort": target}],
    });
    let mut facts = named_service(name, &spec);
    // `named_service` gives those without a selector one.
    facts.selector = text_map(&spec, "selector");
    facts.uid = format!("s{uid}").into();
    facts
}

impl Expected {
    fn change(&mut self, rng: &mut Rng, now: Monotonic, tracker: &mut Tracker) {
        match rng.u8(0..20) {
            0..12 => {
                let pod = random_pod(rng);
                self.pods.insert(pod.uid.clone(), pod.clone());
                tracker.pod(now, pod);
            }
            12..15 => {
                let uid = random_pod(rng).uid;
                self.pods.remove(&uid);
                tracker.pod_gone(now, &uid);
            }
            15..17 => self.put_service(rng, now, tracker),
            17 => {
                let name = random_service(rng, 0).name;
                if let Some(service) = self.services.remove(&name) {
                    tracker.service_gone(now, &Identity::new("ns", &name, &service.uid));
                }
            }
            18 => {
                self.nodes.insert("n2".into());
                tracker.node(now, &"n2".into(), None);
            }
            _ => {
                self.nodes.remove("n2");
                tracker.node_gone(now, "n2");
            }
        }
    }

    fn put_service(&mut self, rng: &mut Rng, now: Monotonic, tracker: &mut Tracker) {
        self.uids += 1;
        let mut service = random_service(rng, self.uids);
        if let Some(before) = self.services.get(&service.name) {
            if rng.bool() {
                service.uid = before.uid.clone();
            } else {
                tracker.service_gone(now, &Identity::new("ns", &before.name, &before.uid));
            }
        }
        self.services.insert(service.name.clone(), service.clone());
        tracker.service(now, service);
    }

    /// The endpoints of a service as `port address ready pod`, computed from scratch.
    fn expected_endpoints(&self, service: &ServiceFacts) -> BTreeSet<String> {
        let mut all = BTreeSet::new();
        for pod in self.pods.values() {
            let node = pod.node.as_ref().unwrap();
            let lost = !self.nodes.contains(node) && !service.publish_not_ready;
            if pod.terminal || lost || !service.matches(&pod.labels) {
                continue;
            }
            let port = match &service.ports[0].target {
                facts::Target::Number(number) => Some(*number),
                facts::Target::Name(_) => pod.ports.first().map(|port| port.number),
            };
            let ready = service.publish_not_ready || pod.ready && !pod.terminating;
            // No node of these tests has a zone.
            let node_hint = service.distribution == Some(Distribution::SameNode) && ready;
            let hint = if node_hint { node } else { "" };
            for address in &pod.addresses {
                if service.families.contains(&Family::of(*address)) {
                    all.insert(format!("{port:?} {address} {ready} {hint} {}", pod.uid));
                }
            }
        }
        all
    }

    fn check(&self, fake_api: &FakeApi, hint: &str) {
        for service in self.services.values().filter(|service| service.selects()) {
            let label = "kubernetes.io/service-name";
            let slices = fake_api.slices();
            let slices: Vec<&&Value> = slices
                .iter()
                .filter(|slice| slice["metadata"]["labels"][label] == *service.name)
                .collect();
            let mut written = BTreeSet::new();
            for slice in &slices {
                let count = list(slice, "endpoints").len();
                assert!(count <= LIMITS.slice, "{hint}: {slice}");
                let owner = &slice["metadata"]["ownerReferences"][0]["uid"];
                assert_eq!(*owner, *service.uid, "{hint}");
                for endpoint in list(slice, "endpoints") {
                    let port = slice["ports"][0]["port"].as_u64();
                    let hint = &endpoint["hints"]["forNodes"][0]["name"];
                    let line = format!(
                        "{port:?} {} {} {} {}",
                        endpoint["addresses"][0].as_str().unwrap(),
                        endpoint["conditions"]["ready"],
                        hint.as_str().unwrap_or_default(),
                        endpoint["targetRef"]["uid"].as_str().unwrap(),
                    );
                    assert!(written.insert(line), "{hint}: twice: {endpoint}");
                }
            }
            assert_eq!(written, self.expected_endpoints(service), "{hint}");
            let families = service.families.len();
            assert!(slices.len() >= families, "{hint}: no slice for a family");
            self.check_endpoints(service, fake_api, hint);
        }
        for object in fake_api.slices() {
            let name = object["metadata"]["labels"]["kubernetes.io/service-name"].as_str();
            assert!(
                self.services.contains_key(name.unwrap()),
                "{hint}: {object}"
            );
        }
    }

    fn check_endpoints(&self, service: &ServiceFacts, fake_api: &FakeApi, hint: &str) {
        let stored = fake_api.objects.get(&(false, service.name.clone()));
        let stored = stored.unwrap_or_else(|| panic!("{hint}: no Endpoints of {}", service.name));
        let mut listed = 0;
        for subset in list(stored, "subsets") {
            listed += list(subset, "addresses").len();
            listed += list(subset, "notReadyAddresses").len();
        }
        let leaving = |uid: &str| self.pods[uid].terminating && !service.publish_not_ready;
        let expected_endpoints = self.expected_endpoints(service);
        let expected = expected_endpoints.iter().filter(|line| {
            let uid = line.rsplit(' ').next().unwrap();
            !line.starts_with("None") && !line.contains("fd00") && !leaving(uid)
        });
        assert_eq!(
            listed,
            expected.count().min(LIMITS.endpoints),
            "{hint}: {stored}"
        );
    }
}

/// Another client changes what the tracker wrote.
fn corrupt(rng: &mut Rng, fake_api: &mut FakeApi) {
    let names: Vec<(bool, Arc<str>)> = fake_api.objects.keys().cloned().collect();
    let Some((slice, name)) = rng.choice(names) else {
        return;
    };
    if rng.bool() {
        return fake_api.delete(slice, &name);
    }
    let mut object = fake_api.objects[&(slice, name)].clone();
    match rng.u8(0..3) {
        0 => object["metadata"]["labels"]["x"] = json!("y"),
        1 if slice => object["endpoints"] = json!([]),
        _ if slice => {
            let twice = object["endpoints"][0].clone();
            if let (Value::Array(list), false) = (&mut object["endpoints"], twice.is_null()) {
                list.push(twice);
            }
        }
        _ => object["subsets"] = json!([]),
    }
    fake_api.put(slice, object);
}

fn history(seed: u64) {
    let mut rng = Rng::with_seed(seed);
    let mut tracker = Tracker::new(FORMS, LIMITS);
    let (mut expected_state, mut fake_api, mut now) =
        (Expected::default(), FakeApi::default(), Monotonic::START);
    expected_state.nodes.insert("n1".into());
    tracker.node(now, &"n1".into(), None);
    let mut in_flight: Vec<Write> = Vec::new();
    for step in 0..120 {
        now = now + Duration::from_millis(rng.u64(0..300));
        expected_state.change(&mut rng, now, &mut tracker);
        if rng.u8(0..10) == 0 {
            corrupt(&mut rng, &mut fake_api);
        }
        in_flight.extend(fake_api.writes_due(now, &mut tracker));
        while !in_flight.is_empty() && rng.u8(0..3) > 0 {
            let write = in_flight.swap_remove(rng.usize(..in_flight.len()));
            let outcome = match rng.u8(0..10) {
                0 => Outcome::Failed,
                // It was executed, but the response was lost.
                1 => {
                    fake_api.execute(&write);
                    Outcome::Failed
                }
                _ => fake_api.execute(&write),
            };
            let delivered = rng.usize(..4);
            fake_api.deliver(now, &mut tracker, delivered);
            tracker.write_finished(now, &write, &outcome);
        }
        if step % 40 == 39 {
            for write in in_flight.drain(..) {
                let outcome = fake_api.execute(&write);
                tracker.write_finished(now, &write, &outcome);
            }
            fake_api.converge(&mut now, &mut tracker);
            expected_state.check(&fake_api, &format!("seed {seed}, step {step}"));
        }
    }
}

#[test]
fn the_written_objects_equal_those_from_scratch() {
    with_seeds(0..150, history);
}

#[test]
fn after_a_restart_nothing_is_written() {
    let mut rng = Rng::with_seed(7);
    let mut tracker = Tracker::new(FORMS, LIMITS);
    let (mut expected_state, mut fake_api, mut now) =
        (Expected::default(), FakeApi::default(), Monotonic::START);
    for _ in 0..200 {
        expected_state.change(&mut rng, now, &mut tracker);
    }
    fake_api.converge(&mut now, &mut tracker);
    assert!(fake_api.slices().len() > 3, "there is something to find");
    let mut again = Tracker::new(FORMS, LIMITS);
    for object in fake_api
        .objects
        .clone()
        .into_iter()
        .map(|((slice, _), o)| (slice, o))
    {
        fake_api.put(object.0, object.1);
    }
    fake_api.deliver(now, &mut again, usize::MAX);
    for node in &expected_state.nodes {
        again.node(now, node, None);
    }
    for pod in expected_state.pods.values() {
        again.pod(now, pod.clone());
    }
    for service in expected_state.services.values() {
        again.service(now, service.clone());
    }
    assert_eq!(fake_api.converge(&mut now, &mut again), []);
}
