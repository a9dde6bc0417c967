//! Deletes that race creates: owners deleted while their pods are created, and re-created under the same name.

use std::thread;

use kennel_testkit::Access;
use serde_json::{Value, json};

use crate::cluster_faults::fixture::{Fixture, daemon_set};

const NODES: &str = "6";
const WRITERS: u64 = 4;
const ROUNDS: usize = 60;
const JSON: &str = "application/json";

/// Creates and deletes a few DaemonSets and namespaces at random. All answers are ones that a race may bring.
fn writer(admin: &Access, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut wire = admin.open().unwrap();
    for _ in 0..ROUNDS {
        let space = format!("race-{}", random.u8(0..2));
        let name = format!("set-{}", random.u8(0..2));
        let sets = format!("/apis/apps/v1/namespaces/{space}/daemonsets");
        let policy = *random
            .choice(["Background", "Foreground", "Orphan"].iter())
            .unwrap();
        let options = json!({"propagationPolicy": policy});
        let (method, path, body) = match random.u8(0..8) {
            0 => ("DELETE", format!("/api/v1/namespaces/{space}"), Value::Null),
            1 | 2 => {
                let object = json!({"metadata": {"name": space}});
                ("POST", "/api/v1/namespaces".to_owned(), object)
            }
            3 | 4 => ("DELETE", format!("{sets}/{name}"), options),
            _ => ("POST", sets, daemon_set(&name, "image")),
        };
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let reply = wire.ask(method, &path, JSON, body.as_bytes()).unwrap();
        let fine = matches!(reply.code, 200..=202 | 403 | 404 | 409);
        assert!(fine, "{method} {path}: {}", reply.text());
    }
}

#[test]
fn nothing_is_left_when_deletes_race_creates() {
    let mut fixture = Fixture::start(&["up", "--simulate", NODES]);
    fixture.create(
        "/api/v1/namespaces/default/configmaps",
        &json!({"metadata": {"name": "kept"}}),
    );
    fixture.create(
        "/apis/apps/v1/namespaces/default/daemonsets",
        &daemon_set("kept", "image"),
    );
    fixture.converged(6);
    let kept = fixture.daemons("kept");
    let seed = kennel_testkit::fresh_seed();
    thread::scope(|scope| {
        for number in 0..WRITERS {
            let admin = &fixture.admin;
            scope.spawn(move || writer(admin, seed.wrapping_add(number)));
        }
    });
    // Whatever is there now converges, and nothing hangs on its way out.
    fixture.tidy();
    fixture.converged(6);
    assert_eq!(fixture.daemons("kept"), kept, "what had a living owner");
    for space in ["race-0", "race-1"] {
        fixture.ask(
            "DELETE",
            &format!("/api/v1/namespaces/{space}"),
            &Value::Null,
        );
    }
    fixture.tidy();
    let outside = |object: &Value| object["metadata"]["namespace"] != "default";
    let pods = fixture.list("/api/v1/pods");
    assert!(!pods.iter().any(outside), "{pods:?}");
    assert_eq!(fixture.daemons("kept"), kept);
}
