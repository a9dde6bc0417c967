//! Watches of endpoint slices: states that newer ones replace before they are sent are left out.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::fixture::{TestServer, version};

const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
const ROUNDS: usize = 50;

/// A slice with 100 endpoints of this generation.
fn slice(name: &str, generation: usize) -> Value {
    let endpoints = (0..100).map(|number| {
        json!({
            "addresses": [format!("10.1.{}.{number}", generation % 250)],
            "conditions": {"ready": true, "serving": true, "terminating": false},
            "nodeName": format!("node-{number}"),
            "targetRef": {"kind": "Pod", "namespace": "default", "name": format!("web-{number}")},
        })
    });
    json!({
        "metadata": {"name": name, "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4",
        "endpoints": endpoints.collect::<Vec<_>>(),
        "ports": [{"name": "http", "port": 80, "protocol": "TCP"}],
    })
}

/// What a watcher saw.
#[derive(Default)]
struct Seen {
    events: usize,
    bytes: usize,
    /// The last version of each object that exists.
    objects: BTreeMap<String, Value>,
    last_version: u64,
}

impl Seen {
    /// Takes an event; fails if it cannot follow the earlier ones.
    fn take(&mut self, event: &Value) {
        self.events += 1;
        self.bytes += event.to_string().len();
        let object = &event["object"];
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        let revision = version(object);
        assert!(revision > self.last_version, "{name} is out of order");
        self.last_version = revision;
        let known = self.objects.contains_key(&name);
        match event["type"].as_str().unwrap() {
            "ADDED" => {
                assert!(!known, "{name} was added twice");
                self.objects.insert(name, object.clone());
            }
            "MODIFIED" => {
                assert!(known, "{name} was not there");
                self.objects.insert(name, object.clone());
            }
            "DELETED" => assert!(self.objects.remove(&name).is_some(), "{name} was not there"),
            other => panic!("{other}"),
        }
    }
}

/// Every slice changes in every round; then one is deleted, and another takes its name.
#[tokio::test]
async fn n2_8_a_watcher_that_is_behind_gets_the_latest_state_of_each_slice() {
    let server = TestServer::new().await;
    let names = ["web-a", "web-b", "web-c"];
    let mut seen = Seen::default();
    for name in names {
        let made = server.post(SLICES, &slice(name, 0)).await.is(201);
        seen.last_version = version(&made);
        seen.objects.insert(name.to_owned(), made);
    }
    let from = seen.last_version;
    let mut watch = server
        .watch(&format!("{SLICES}?resourceVersion={from}"))
        .await;
    for generation in 1..=ROUNDS {
        for name in names {
            let path = format!("{SLICES}/{name}");
            server.put(&path, &slice(name, generation)).await.is(200);
        }
    }
    server.delete(&format!("{SLICES}/web-c")).await.is(200);
    let again = server.post(SLICES, &slice("web-c", 99)).await.is(201);
    while seen.last_version < version(&again) {
        let event = watch.next().await.expect("the watch goes on");
        seen.take(&event);
    }
    for name in names {
        let stored = server.get(&format!("{SLICES}/{name}")).await.ok();
        assert_eq!(seen.objects[name], stored, "the last state is never lost");
    }
    // Without it, that would be 152 events of 25 kB.
    assert!(seen.events <= 15, "{} events", seen.events);
    assert!(seen.bytes <= 15 * 25_000, "{} bytes", seen.bytes);
}

#[tokio::test]
async fn n2_8_changes_that_come_slowly_are_all_sent_at_once() {
    let server = TestServer::new().await;
    let made = server.post(SLICES, &slice("web-a", 0)).await.is(201);
    let from = version(&made);
    let mut watch = server
        .watch(&format!("{SLICES}?resourceVersion={from}"))
        .await;
    for generation in 1..=5 {
        let path = format!("{SLICES}/web-a");
        let changed = server.put(&path, &slice("web-a", generation)).await.is(200);
        assert_eq!(watch.expect("MODIFIED", "web-a").await, changed);
    }
}

/// Other resources keep every state: people watch them to see what happens.
#[tokio::test]
async fn n2_8_other_resources_send_every_state() {
    use crate::fixture::{MAPS, map};
    let server = TestServer::new().await;
    let made = server.map("a", &json!({})).await;
    let from = version(&made);
    let mut watch = server
        .watch(&format!("{MAPS}?resourceVersion={from}"))
        .await;
    for value in 0..20 {
        let body = map("a", &json!({"k": value.to_string()}));
        server.put(&format!("{MAPS}/a"), &body).await.is(200);
    }
    for value in 0..20 {
        let event = watch.expect("MODIFIED", "a").await;
        assert_eq!(event["data"]["k"], value.to_string());
    }
}
