//! What goes by itself: namespaces with much in them, pods of nodes that are gone, events and bootstrap
//! tokens that have expired.

use kennel_testkit::{Access, Deadline, Kennel, eventually};
use serde_json::{Value, json};

const BINARY: &str = env!("CARGO_BIN_EXE_kennel");

fn cluster() -> (Kennel, Access) {
    let kennel = Kennel::up(BINARY, 0);
    let admin = Access::admin(kennel.address(), &kennel.data_dir());
    (kennel, admin)
}

fn post(admin: &Access, path: &str, body: &Value) {
    let made = admin.ask("POST", path, body.to_string().as_bytes());
    assert_eq!(made.code, 201, "{}", made.text());
}

fn gone(admin: &Access, path: &str, seconds: u64) {
    eventually(Deadline::seconds(seconds), || {
        let answer = admin.ask("GET", path, b"");
        (answer.code == 404)
            .then_some(())
            .ok_or_else(|| answer.text())
    });
}

#[test]
fn a_namespace_with_a_thousand_objects_goes() {
    let (_kennel, admin) = cluster();
    let name = |name: &str| json!({"metadata": {"name": name}});
    post(&admin, "/api/v1/namespaces", &name("full"));
    let maps = "/api/v1/namespaces/full/configmaps";
    for number in 0..1_000 {
        post(&admin, maps, &name(&format!("map-{number}")));
    }
    let namespace = "/api/v1/namespaces/full";
    assert_eq!(admin.ask("DELETE", namespace, b"").code, 200);
    gone(&admin, namespace, 60);
    let left = admin.ask("GET", maps, b"").json();
    assert_eq!(left["items"], json!([]));
}

#[test]
fn many_namespaces_deleted_together_all_go() {
    let (_kennel, admin) = cluster();
    let path = |number: u32| format!("/api/v1/namespaces/many-{number}");
    for number in 0..100 {
        let namespace = json!({"metadata": {"name": format!("many-{number}")}});
        post(&admin, "/api/v1/namespaces", &namespace);
        let map = json!({"metadata": {"name": "map"}});
        post(&admin, &format!("{}/configmaps", path(number)), &map);
    }
    for number in 0..100 {
        assert_eq!(admin.ask("DELETE", &path(number), b"").code, 200);
    }
    for number in 0..100 {
        gone(&admin, &path(number), 60);
    }
    let maps = admin.ask("GET", "/api/v1/configmaps", b"").json();
    let of = |map: &Value| map["metadata"]["namespace"].as_str().unwrap().to_owned();
    let maps = maps["items"].as_array().unwrap().iter().map(of);
    assert!(!maps.into_iter().any(|ns| ns.starts_with("many-")));
}

#[test]
fn pods_of_a_node_that_never_was_go_and_a_tokens_end_is_its_end() {
    let (_kennel, admin) = cluster();
    let pod = json!({"metadata": {"name": "p"},
        "spec": {"nodeName": "ghost", "containers": [{"name": "c", "image": "i"}]}});
    post(&admin, "/api/v1/namespaces/default/pods", &pod);
    let secrets = "/api/v1/namespaces/kube-system/secrets";
    let token = |id: &str, expiration: &str| {
        json!({"metadata": {"name": format!("bootstrap-token-{id}")},
            "type": "bootstrap.kubernetes.io/token",
            "stringData": {"token-id": id, "token-secret": "0123456789abcdef",
                           "expiration": expiration}})
    };
    post(&admin, secrets, &token("aaaaaa", "2020-01-01T00:00:00Z"));
    post(&admin, secrets, &token("bbbbbb", "2220-01-01T00:00:00Z"));
    gone(&admin, &format!("{secrets}/bootstrap-token-aaaaaa"), 30);
    let kept = format!("{secrets}/bootstrap-token-bbbbbb");
    assert_eq!(admin.ask("GET", &kept, b"").code, 200);
    // It stays for the forty seconds in which its node may only be late.
    let path = "/api/v1/namespaces/default/pods/p";
    assert_eq!(admin.ask("GET", path, b"").code, 200);
    gone(&admin, path, 90);
}

#[test]
fn events_go_when_their_time_has_come_and_not_before() {
    let (kennel, admin) = cluster();
    let events = "/api/v1/namespaces/default/events";
    let event = |name: &str| {
        let time = "2020-01-01T00:00:00Z";
        json!({"metadata": {"name": name}, "reason": "Test", "message": "m", "type": "Normal",
            "involvedObject": {"kind": "ConfigMap", "name": "m", "namespace": "default"},
            "firstTimestamp": time, "lastTimestamp": time})
    };
    post(&admin, events, &event("old"));
    // What is reported late is kept for its time, too.
    let kennel = kennel.restart();
    let admin = Access::admin(kennel.address(), &kennel.data_dir());
    assert_eq!(admin.ask("GET", &format!("{events}/old"), b"").code, 200);
    let kennel = kennel.restart_with(&["up", "--nodes", "0", "--event-ttl", "1"]);
    let admin = Access::admin(kennel.address(), &kennel.data_dir());
    gone(&admin, &format!("{events}/old"), 30);
    // And one that comes while the server runs.
    post(&admin, events, &event("later"));
    gone(&admin, &format!("{events}/later"), 30);
}
