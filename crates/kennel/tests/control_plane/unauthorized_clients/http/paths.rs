//! Paths that the authoriser and the router could parse differently.

use kennel_testkit::Access;
use serde_json::json;

use super::{is_well, jane};
use crate::unauthorized_clients::fixture::{SECRETS, Target};

const NAME: &str = "treasure";

fn check(who: &Access, path: &str, expected: u16) {
    let reply = who.ask("GET", path, b"");
    let text = reply.text();
    assert_eq!(reply.code, expected, "{path}: {text}");
    assert!(!text.contains("Z29sZA"), "{path}: {text}");
}

fn target() -> Target {
    let target = Target::new();
    let secret = json!({"metadata": {"name": NAME}, "stringData": {"content": "gold"}});
    target.create(SECRETS, &secret);
    target
}

#[test]
fn a_stranger_finds_no_way_round() {
    let target = target();
    let stranger = target.stranger();
    // What is open to all opens nothing else. Within it, what is not there may be said not to be.
    for path in [
        "/healthz/../api/v1/namespaces/default/secrets",
        "/healthz/..%2fapi%2fv1%2fnamespaces%2fdefault%2fsecrets",
        "/healthz/%2e%2e/api/v1/namespaces/default/secrets",
        "/version/../metrics",
        "/readyz/../../api",
        "/livez//api/v1/namespaces/default/secrets",
    ] {
        check(&stranger, path, 404);
    }
    for path in [
        "/api/v1/namespaces/default/secrets/treasure",
        "//api/v1/namespaces/default/secrets/treasure",
        "/api//v1/namespaces/default/secrets/treasure",
        "/./api/v1/namespaces/default/secrets/treasure",
        "/api/./v1/namespaces/default/secrets/treasure",
        "/%61pi/v1/namespaces/default/secrets/treasure",
        "/API/v1/namespaces/default/secrets/treasure",
        "/api/v1/namespaces/default/secrets/treasure/",
        "/api/v1/namespaces/default/secrets/treasure%00",
        "/api/v1/namespaces/default/secrets/treasure;x=y",
        "/api/v1/namespaces/default/secrets/treasure%3fwatch=1",
        "/api/v1/namespaces/default/secrets?pretty=%00",
        "/healthz;/../api/v1/namespaces/default/secrets",
        "/healthz%00",
        "/healthz%2f..%2fapi",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/openapi/v3/../../metrics",
        "/metrics",
        "/",
    ] {
        check(&stranger, path, 401);
    }
    is_well(&target);
}

#[test]
fn rights_in_one_namespace_lead_to_no_other() {
    let target = target();
    let jane = jane(&target);
    check(&jane, "/api/v1/namespaces/mine/secrets", 200);
    for path in [
        "/api/v1/secrets",
        "/api/v1/namespaces/default/secrets/treasure",
        "/api/v1/namespaces/mine%2f..%2fdefault/secrets/treasure",
        "/api/v1/namespaces/..%2fdefault/secrets/treasure",
        "/api/v1/namespaces/default%00/secrets/treasure",
        "/api/v1/namespaces/mine;default/secrets/treasure",
        "/api/v1/namespaces/MINE/secrets/treasure",
        "/api/v1/namespaces/mine%20/secrets/treasure",
        "/api/v1/namespaces/mine/../default/secrets/treasure",
        "/api/v1/namespaces/mine/secrets/../../default/secrets/treasure",
        "/api/v1/namespaces/mine/secrets/x/../../../default/secrets/treasure",
    ] {
        check(&jane, path, 403);
    }
    // Within her own namespace she may be told what is wrong with a name.
    for (path, expected) in [
        (
            "/api/v1/namespaces/mine/secrets/..%2f..%2fdefault%2fsecrets%2ftreasure",
            400,
        ),
        ("/api/v1/namespaces/mine/secrets/%2e%2e", 400),
        ("/api/v1/namespaces/mine/secrets/..", 400),
        ("/api/v1/namespaces/mine/secrets/treasure%00", 404),
        ("/api/v1/namespaces/mine/secrets/treasure;a=b", 404),
        ("/api/v1/namespaces/mine/secrets/%25", 400),
    ] {
        check(&jane, path, expected);
    }
    is_well(&target);
}

#[test]
fn a_path_beyond_all_measure_is_refused() {
    let target = target();
    let long = format!("{SECRETS}/{}", "a".repeat(200_000));
    let mut wire = target.admin.open().unwrap();
    let request = format!("GET {long} HTTP/1.1\r\nHost: k\r\n\r\n");
    // It may hang up before all is sent, but not without a word.
    let _sent = wire.send(request.as_bytes());
    let (code, head) = wire.head().unwrap();
    assert!(matches!(code, 414 | 431), "{head}");
    let deep = "/a".repeat(10_000);
    check(&target.admin, &deep, 404);
    check(&target.stranger(), &deep, 401);
    is_well(&target);
}
