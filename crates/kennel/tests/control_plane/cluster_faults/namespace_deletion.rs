//! A thousand namespaces deleted together.

use std::thread;
use std::time::{Duration, Instant};

use kennel_testkit::Access;
use serde_json::{Value, json};

use crate::cluster_faults::fixture::Fixture;

const NAMESPACES: usize = 1_000;
const WRITERS: usize = 16;
const JSON: &str = "application/json";
/// What it may take until all are gone, without optimisation and on a busy machine.
const GONE: Duration = Duration::from_mins(1);

/// Sends the same to every namespace, from a few writers at once.
fn to_each(admin: &Access, ask: impl Fn(usize) -> Vec<(&'static str, String, Value)> + Sync) {
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let ask = &ask;
            scope.spawn(move || {
                let mut wire = admin.open().unwrap();
                for number in (writer..NAMESPACES).step_by(WRITERS) {
                    for (method, path, body) in ask(number) {
                        let body = if body.is_null() {
                            String::new()
                        } else {
                            body.to_string()
                        };
                        let reply = wire.ask(method, &path, JSON, body.as_bytes()).unwrap();
                        assert!(reply.code < 300, "{path}: {}", reply.text());
                    }
                }
            });
        }
    });
}

#[test]
fn a_thousand_namespaces_go_together() {
    let mut fixture = Fixture::start(&["up", "--nodes", "0"]);
    let named = |name: &str| json!({"metadata": {"name": name}});
    fixture.create("/api/v1/namespaces/default/configmaps", &named("kept"));
    to_each(&fixture.admin, |number| {
        let space = format!("/api/v1/namespaces/many-{number}");
        let name = format!("many-{number}");
        vec![
            ("POST", "/api/v1/namespaces".to_owned(), named(&name)),
            ("POST", format!("{space}/configmaps"), named("one")),
            ("POST", format!("{space}/configmaps"), named("two")),
            ("POST", format!("{space}/secrets"), named("three")),
        ]
    });
    let began = Instant::now();
    to_each(&fixture.admin, |number| {
        let path = format!("/api/v1/namespaces/many-{number}");
        vec![("DELETE", path, Value::Null)]
    });
    for number in 0..NAMESPACES {
        let path = format!("/api/v1/namespaces/many-{number}");
        while fixture.ask("GET", &path, &Value::Null).0 != 404 {
            assert!(began.elapsed() < GONE, "{path} is left");
            thread::sleep(Duration::from_millis(50));
        }
    }
    let took = began.elapsed();
    fixture.tidy();
    let maps = fixture.list("/api/v1/configmaps");
    let many = |object: &Value| {
        let namespace = object["metadata"]["namespace"].as_str().unwrap();
        namespace.starts_with("many-")
    };
    assert!(!maps.iter().any(many), "{maps:?}");
    let kept = |object: &Value| object["metadata"]["name"] == "kept";
    assert!(maps.iter().any(kept));
    assert!(took < GONE, "{took:?}");
}
