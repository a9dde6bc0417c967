//! Deletes that race creates: owners that go while their pods come, and come back under the same name.

use std::thread;

use kennel_testkit::Access;
use serde_json::{Value, json};

use crate::world::{World, daemon_set};

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
    let mut world = World::start(&["up", "--simulate", NODES]);
    world.create(
        "/api/v1/namespaces/default/configmaps",
        &json!({"metadata": {"name": "kept"}}),
    );
    world.create(
        "/apis/apps/v1/namespaces/default/daemonsets",
        &daemon_set("kept", "image"),
    );
    world.converged(6);
    let kept = world.daemons("kept");
    thread::scope(|scope| {
        for seed in 0..WRITERS {
            let admin = &world.admin;
            scope.spawn(move || writer(admin, seed));
        }
    });
    // Whatever is there now converges, and nothing hangs on its way out.
    world.tidy();
    world.converged(6);
    assert_eq!(world.daemons("kept"), kept, "what had a living owner");
    for space in ["race-0", "race-1"] {
        world.ask(
            "DELETE",
            &format!("/api/v1/namespaces/{space}"),
            &Value::Null,
        );
    }
    world.tidy();
    let outside = |object: &Value| object["metadata"]["namespace"] != "default";
    let pods = world.list("/api/v1/pods");
    assert!(!pods.iter().any(outside), "{pods:?}");
    assert_eq!(world.daemons("kept"), kept);
}
