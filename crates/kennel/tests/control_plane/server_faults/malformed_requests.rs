//! Requests that make no sense: bodies, types, paths and sizes.

use crate::server_faults::fixture::{CONFIGMAPS, Fixture, configmap, refusal, server};

const JSON: &str = "application/json";
const REVISIONS: &str = "/apis/apps/v1/namespaces/default/controllerrevisions";

fn nested(depth: usize) -> Vec<u8> {
    [b"[".repeat(depth), b"]".repeat(depth)].concat()
}

fn check(server: &Fixture, method: &str, path: &str, body: &[u8], expected: (u16, &str)) {
    check_type(server, method, path, JSON, body, expected);
}

fn check_type(
    server: &Fixture,
    method: &str,
    path: &str,
    content_type: &str,
    body: &[u8],
    expected: (u16, &str),
) {
    let mut wire = server.admin.open().unwrap();
    let reply = wire.ask(method, path, content_type, body).unwrap();
    let (code, reason) = refusal(&reply);
    let shown = &body[..body.len().min(80)];
    let shown = format!("{method} {path} {}", shown.escape_ascii());
    assert_eq!((code, reason.as_str()), expected, "{shown}");
    // The connection is as good as before.
    let ready = wire.ask("GET", "/readyz", JSON, b"").unwrap();
    assert_eq!(ready.code, 200, "{shown}");
}

#[test]
fn broken_bodies_are_bad_requests() {
    let server = server();
    let deep = [br#"{"data":"#, &nested(100_000)[..], b"}"].concat();
    let digits = [br#"{"data":{"a":"#, &b"9".repeat(100_000)[..], b"}}"].concat();
    let bodies: [&[u8]; 15] = [
        b"",
        b"{",
        b"{}}",
        b"[]",
        b"\"text\"",
        b"apiVersion: v1",
        b"k8s\0\n\x0f",
        &nested(100_000),
        &deep,
        &digits,
        br#"{"data":{"a":1e999}}"#,
        br#"{"immutable":"yes"}"#,
        b"{\"data\":{\"a\":\"\xff\xfe\"}}",
        b"{\"data\":{\"a\":\"\0\"}}",
        br#"{"data":{"a":"\ud800"#,
    ];
    for body in bodies {
        check(&server, "POST", CONFIGMAPS, body, (400, "BadRequest"));
    }
    // As to Go, null is an object without anything in it.
    check(&server, "POST", CONFIGMAPS, b"null", (422, "Invalid"));
    server.is_well("broken bodies");
}

#[test]
fn what_is_said_in_the_wrong_place_is_refused() {
    let server = server();
    let bad = (400, "BadRequest");
    let pod = br#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p"}}"#;
    check(&server, "POST", CONFIGMAPS, pod, bad);
    let version = br#"{"kind":"ConfigMap","apiVersion":"v9","metadata":{"name":"p"}}"#;
    check(&server, "POST", CONFIGMAPS, version, bad);
    let elsewhere = br#"{"metadata":{"name":"p","namespace":"kube-system"}}"#;
    check(&server, "POST", CONFIGMAPS, elsewhere, bad);
    let nameless = br#"{"metadata":{"name":"../../etc/passwd"}}"#;
    check(&server, "POST", CONFIGMAPS, nameless, (422, "Invalid"));
    let nul = br#"{"metadata":{"name":"a\u0000b"}}"#;
    check(&server, "POST", CONFIGMAPS, nul, (422, "Invalid"));
    let nowhere = "/api/v1/namespaces/nowhere/configmaps";
    let body = configmap("a", "b");
    check(&server, "POST", nowhere, &body, (404, "NotFound"));
    let collection = (405, "MethodNotAllowed");
    for method in ["PUT", "PATCH", "OPTIONS", "TRACE", "BREW"] {
        check(&server, method, CONFIGMAPS, &body, collection);
    }
    check(&server, "POST", "/readyz", &body, collection);
    let object = format!("{CONFIGMAPS}/a");
    check(&server, "POST", &object, &body, collection);
    server.is_well("misplaced requests");
}

#[test]
fn unknown_types_of_content_are_refused() {
    let server = server();
    let unknown = (415, "UnsupportedMediaType");
    let body = configmap("a", "b");
    for content_type in ["text/plain", "application/cbor", "x", "multipart/form-data"] {
        check_type(&server, "POST", CONFIGMAPS, content_type, &body, unknown);
    }
    let path = format!("{CONFIGMAPS}/kube-root-ca.crt");
    for content_type in [JSON, "text/plain", ""] {
        check_type(&server, "PATCH", &path, content_type, b"{}", unknown);
    }
    for content_type in [
        "application/merge-patch+json",
        "application/json-patch+json",
    ] {
        let bad = (400, "BadRequest");
        check_type(&server, "PATCH", &path, content_type, b"{", bad);
        check_type(&server, "PATCH", &path, content_type, b"1", bad);
        check_type(&server, "PATCH", &path, content_type, &nested(1000), bad);
    }
    let (apply, path) = (
        "application/apply-patch+yaml",
        format!("{path}?fieldManager=m"),
    );
    for body in [&b"{{{"[..], b"1", b"{}", &nested(1000)] {
        check_type(&server, "PATCH", &path, apply, body, (400, "BadRequest"));
    }
    let mut wire = server.admin.open().unwrap();
    let request = "GET /api/v1/pods HTTP/1.1\r\nHost: k\r\nAccept: image/png\r\n\r\n";
    wire.send(request.as_bytes()).unwrap();
    let (code, reason) = refusal(&wire.reply().unwrap());
    assert_eq!((code, reason.as_str()), (406, "NotAcceptable"));
    server.is_well("unknown types of content");
}

#[test]
fn impossible_paths_and_parameters_are_refused() {
    let server = server();
    let missing = (404, "NotFound");
    for path in [
        "/nothing",
        "/api/v1/nothing",
        "/api/v2/pods",
        "/api/v1/namespaces//configmaps",
        "/api/v1//namespaces",
        "/api/v1/nodes/%ff",
        "/api/v1/nodes/n/nothing",
        "/api/v1/namespaces/default/configmaps/a/b/c",
        "/apis/apps/v1/namespaces/default/daemonsets/absent",
        "/a/b/c/d/e/f/g/h/i/j/k/l/m/n",
    ] {
        check(&server, "GET", path, b"", missing);
    }
    let bad = (400, "BadRequest");
    for path in [
        "/api/v1/nodes/..",
        "/api/v1/nodes/%2e%2e",
        "/api/v1/nodes/a%2Fb",
        "/api/v1/nodes/%zz",
        "/api/v1/namespaces/default/configmaps/%25",
        "/api/v1/pods?limit=many",
        "/api/v1/pods?limit=99999999999999999999",
        "/api/v1/pods?watch=perhaps",
        "/api/v1/pods?labelSelector=a+in+(",
        "/api/v1/pods?fieldSelector=spec.colour%3Dred",
        "/api/v1/pods?fieldSelector=%ff",
        "/api/v1/pods?continue=%00%ff",
        "/api/v1/pods?resourceVersion=first",
        "/api/v1/pods?watch=1&resourceVersion=-1",
        "/api/v1/pods?includeObject=Some",
    ] {
        check(&server, "GET", path, b"", bad);
    }
    // A path that is only almost too long names nothing.
    let long = format!("/api/v1/nodes/{}", "a".repeat(30_000));
    check(&server, "GET", &long, b"", missing);
    server.is_well("impossible paths");
}

#[test]
fn numbers_at_the_edge_of_time_do_no_harm() {
    let server = server();
    let pod = br#"{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}],
        "terminationGracePeriodSeconds":9223372036854775807,"nodeName":"n"}}"#;
    let pods = "/api/v1/namespaces/default/pods";
    let created = server.admin.ask("POST", pods, pod);
    assert_eq!(created.code, 201, "{}", created.text());
    let path = format!("{pods}/p?gracePeriodSeconds=9223372036854775807");
    assert_eq!(server.admin.ask("DELETE", &path, b"").code, 200);
    let options = br#"{"gracePeriodSeconds":-9223372036854775808}"#;
    let path = format!("{pods}/p");
    assert_eq!(server.admin.ask("DELETE", &path, options).code, 200);
    let token = br#"{"spec":{"expirationSeconds":9223372036854775807}}"#;
    let path = "/api/v1/namespaces/default/serviceaccounts/default/token";
    let _any_answer = refusal_or_success(server.admin.ask("POST", path, token).code);
    let mut wire = server.admin.open().unwrap();
    let path = "/api/v1/pods?watch=1&timeoutSeconds=1&resourceVersion=18446744073709551615";
    assert_eq!(wire.ask("GET", path, JSON, b"").unwrap().code, 200);
    server.is_well("numbers at the edge");
}

fn refusal_or_success(code: u16) -> u16 {
    assert!(code < 500, "{code}");
    code
}

/// As deep as can be decoded is as deep as can be stored, changed and read again; deeper is refused.
#[test]
fn deep_objects_are_read_again_or_refused() {
    let server = server();
    let at = |depth: usize| {
        let data = String::from_utf8(nested(depth)).unwrap();
        format!(r#"{{"metadata":{{"name":"r{depth}"}},"revision":1,"data":{{"a":{data}}}}}"#)
    };
    let created = server.admin.ask("POST", REVISIONS, at(120).as_bytes());
    assert_eq!(created.code, 201, "{}", created.text());
    check(
        &server,
        "POST",
        REVISIONS,
        at(130).as_bytes(),
        (400, "BadRequest"),
    );
    let path = format!("{REVISIONS}/r120");
    // Comparing the old with the new must not take for ever.
    let mut wire = server.admin.open().unwrap();
    let label = br#"{"metadata":{"labels":{"a":"b"}}}"#;
    let merge = "application/merge-patch+json";
    assert_eq!(wire.ask("PATCH", &path, merge, label).unwrap().code, 200);
    assert_eq!(wire.ask("GET", &path, JSON, b"").unwrap().code, 200);
    assert_eq!(wire.ask("GET", REVISIONS, JSON, b"").unwrap().code, 200);
    server.is_well("deep objects");
}

#[test]
fn a_body_that_is_too_large_is_refused_and_the_connection_stays() {
    let server = server();
    let body = configmap("large", &"x".repeat(4 << 20));
    let large = (413, "RequestEntityTooLarge");
    check(&server, "POST", CONFIGMAPS, &body, large);
    // In pieces, without saying how much will come.
    let mut wire = server.admin.open().unwrap();
    let head = format!(
        "POST {CONFIGMAPS} HTTP/1.1\r\nHost: k\r\nContent-Type: {JSON}\r\n\
         Transfer-Encoding: chunked\r\n\r\n"
    );
    wire.send(head.as_bytes()).unwrap();
    let chunk = [
        format!("{:x}\r\n", 1 << 20).as_bytes(),
        &vec![b' '; 1 << 20],
        b"\r\n",
    ]
    .concat();
    for _ in 0..4 {
        wire.send(&chunk).unwrap();
    }
    wire.send(b"0\r\n\r\n").unwrap();
    let (code, reason) = refusal(&wire.reply().unwrap());
    assert_eq!((code, reason.as_str()), large);
    assert_eq!(wire.ask("GET", "/readyz", JSON, b"").unwrap().code, 200);
    // Asked first, the server says so before anything is sent.
    let mut wire = server.admin.open().unwrap();
    let head = format!(
        "POST {CONFIGMAPS} HTTP/1.1\r\nHost: k\r\nExpect: 100-continue\r\n\
         Content-Length: {}\r\n\r\n",
        100 << 20
    );
    wire.send(head.as_bytes()).unwrap();
    assert_eq!(refusal(&wire.reply().unwrap()).0, 413);
    // An object may be within the limit for bodies and still be too large for its kind.
    let body = configmap("large", &"x".repeat(2 << 20));
    check(&server, "POST", CONFIGMAPS, &body, (422, "Invalid"));
    let listed = server.admin.ask("GET", CONFIGMAPS, b"").text();
    assert!(!listed.contains("\"large\""), "something was stored");
    server.is_well("large bodies");
}

/// Below the API there is only HTTP: no Status, but a code, and no harm to others.
#[test]
fn headers_and_addresses_that_are_too_long_are_refused() {
    let server = server();
    let (long, longer) = ("a".repeat(100_000), "a".repeat(300_000));
    for (request, codes) in [
        (
            format!("GET /readyz HTTP/1.1\r\nHost: k\r\nX-Long: {longer}\r\n\r\n"),
            [431, 431],
        ),
        (
            format!("GET /api/v1/nodes/{long} HTTP/1.1\r\nHost: k\r\n\r\n"),
            [414, 431],
        ),
        ("NONSENSE\r\n\r\n".to_owned(), [400, 400]),
        (
            "GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n".to_owned(),
            [400, 400],
        ),
    ] {
        let mut wire = server.admin.open().unwrap();
        // It may hang up before all is sent, but not without a word.
        let _sent = wire.send(request.as_bytes());
        let (code, head) = wire.head().unwrap();
        assert!(
            codes.contains(&code),
            "{}: {head}",
            &request[..20.min(request.len())]
        );
    }
    server.is_well("long headers");
}

#[test]
fn strangers_are_turned_away_before_their_bodies_are_read() {
    let server = server();
    let mut wire = server.stranger().open().unwrap();
    let head = format!("POST {CONFIGMAPS} HTTP/1.1\r\nHost: k\r\nContent-Length: 1000000\r\n\r\n");
    wire.send(head.as_bytes()).unwrap();
    let (code, reason) = refusal(&wire.reply().unwrap());
    assert_eq!((code, reason.as_str()), (401, "Unauthorized"));
    assert_eq!(server.stranger().ask("GET", "/readyz", b"").code, 200);
    assert_eq!(server.stranger().ask("GET", "/nothing", b"").code, 401);
    server.is_well("strangers");
}
