//! Requests hidden in others: whatever two readers of HTTP/1.1 could disagree about is refused, or at
//! least is the last thing said on its connection.

use kennel_testkit::Access;

use super::is_well;
use crate::unauthorized_clients::fixture::Target;

/// What must never be taken for a request.
const HIDDEN: &str = "GET /smuggled HTTP/1.1\r\nHost: k\r\n\r\n";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Says something that must be the last on its connection, and returns the codes of all answers.
fn codes(who: &Access, request: &str) -> Vec<u16> {
    let mut wire = who.open().unwrap();
    let _sent = wire.send(request.as_bytes());
    let answers = wire.rest().unwrap_or_default();
    let answers = String::from_utf8_lossy(&answers).into_owned();
    let starts = answers.split("HTTP/1.1 ").skip(1);
    starts.map(|rest| rest[..3].parse().unwrap()).collect()
}

fn check(target: &Target, request: &str, expected: &[u16]) {
    let got = codes(&target.admin, request);
    assert_eq!(got, expected, "{}", request.escape_debug());
    let log = target.kennel.log();
    assert!(!log.contains("/smuggled"), "{}", request.escape_debug());
}

/// The measure itself: what is a request is counted as one.
#[test]
fn requests_one_after_the_other_are_answered_in_order() {
    let target = Target::new();
    let ready = "GET /readyz HTTP/1.1\r\nHost: k\r\n\r\n";
    let last = ready.replace("Host: k", "Host: k\r\nConnection: close");
    let got = codes(&target.admin, &format!("{ready}{HIDDEN}{last}"));
    assert_eq!(got, [200, 404, 200]);
    assert!(target.kennel.log().contains("/smuggled"));
}

#[test]
fn a_body_has_one_length() {
    let target = Target::new();
    let post = format!("POST {MAPS} HTTP/1.1\r\nHost: k\r\n");
    let inside = format!("{:x}\r\n{HIDDEN}\r\n0\r\n\r\n", HIDDEN.len());
    let length = HIDDEN.len() + 5;
    // Chunks win over a length, as HTTP has it, and the connection ends there.
    for both in [
        format!("Content-Length: {length}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{HIDDEN}"),
        format!("Transfer-Encoding: chunked\r\nContent-Length: {length}\r\n\r\n0\r\n\r\n{HIDDEN}"),
        format!("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n{inside}{HIDDEN}"),
        format!("Content-Length: 4\r\nTransfer-Encoding: Chunked\r\n\r\n{inside}{HIDDEN}"),
    ] {
        check(&target, &format!("{post}{both}"), &[400]);
    }
    for headers in [
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        "Transfer-Encoding: identity",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding: chunked, gzip",
        "Transfer-Encoding : chunked",
        "Transfer-Encoding\t: chunked",
        "Transfer-Encoding: \x0bchunked",
        "Transfer-Encoding: chunked\x00",
        "Transfer-Encoding:\r\n chunked",
        "X: y\r\n Transfer-Encoding: chunked",
        "Content-Length: 0\r\nContent-Length: 5",
        "Content-Length: 0, 5",
        "Content-Length: 0 5",
        "Content-Length: +5",
        "Content-Length: 0x5",
        "Content-Length: -1",
        "Content-Length: 5\r\n 0",
        "Content-Length: 99999999999999999999999",
        "Content-Length : 5",
        " Content-Length: 5",
        "Content Length: 5",
        ": nameless",
        "X: a\rb",
    ] {
        check(&target, &format!("{post}{headers}\r\n\r\n{HIDDEN}"), &[400]);
    }
    is_well(&target);
}

#[test]
fn chunks_are_counted_strictly() {
    let target = Target::new();
    let post = format!("POST {MAPS} HTTP/1.1\r\nHost: k\r\nTransfer-Encoding: chunked\r\n\r\n");
    let extension = format!("0;{}\r\n\r\n", "x".repeat(100_000));
    for chunks in [
        "0\n\n",
        "0x0\r\n\r\n",
        "-0\r\n\r\n",
        "+0\r\n\r\n",
        "ffffffffffffffffff\r\n",
        "1\r\nab\r\n0\r\n\r\n",
        "1\r\na0\r\n\r\n",
        " 0\r\n\r\n",
        "\r\n0\r\n\r\n",
        "",
        &extension,
    ] {
        check(&target, &format!("{post}{chunks}{HIDDEN}"), &[400]);
    }
    // What may be said about a chunk is allowed, and not listened to.
    let post = post.replace("Host: k", "Host: k\r\nConnection: close");
    let request = format!("{post}0;name=value\r\n\r\n");
    assert_eq!(codes(&target.admin, &request), [400], "no object");
    is_well(&target);
}

#[test]
fn a_request_line_is_one() {
    let target = Target::new();
    for line in [
        "GET  /readyz HTTP/1.1",
        "GET /readyz  HTTP/1.1",
        "GET /readyz HTTP/1.1 ",
        "GET /ready z HTTP/1.1",
        "GET /readyz HTTP/3.0",
        "GET /readyz",
        "GET",
        " GET /readyz HTTP/1.1",
        "G@T /readyz HTTP/1.1",
        "GET \x01 HTTP/1.1",
        "GET kennel:443 HTTP/1.1",
        "GET * HTTP/1.1",
        "OPTIONS * HTTP/1.1",
        "CONNECT kennel:443 HTTP/1.1",
        "PRI * HTTP/2.0",
    ] {
        let request = format!("{line}\r\nHost: k\r\nConnection: close\r\n\r\n");
        check(&target, &request, &[400]);
    }
    let hostless = "GET /readyz HTTP/1.1\r\nConnection: close\r\n\r\n";
    check(&target, hostless, &[400]);
    let hosts = "GET /readyz HTTP/1.1\r\nHost: k\r\nHost: l\r\nConnection: close\r\n\r\n";
    check(&target, hosts, &[400]);
    is_well(&target);
}

/// The server has no virtual hosts: any `Host` gets the same answer.
#[test]
fn names_of_hosts_change_nothing() {
    let target = Target::new();
    for (line, host) in [
        ("GET https://elsewhere/readyz HTTP/1.1", "k"),
        ("GET http://kennel/readyz HTTP/1.1", "elsewhere"),
        ("GET /readyz HTTP/1.1", "elsewhere:1"),
        ("GET /readyz HTTP/1.1", ""),
    ] {
        let request = format!("{line}\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        check(&target, &request, &[200]);
        let secrets = request.replace("/readyz", "/api/v1/secrets");
        assert_eq!(codes(&target.stranger(), &secrets), [401], "{secrets}");
    }
}

/// A body belongs to its request, even where it is not read, and no connection is upgraded.
#[test]
fn bodies_nobody_asked_for_are_no_requests() {
    let target = Target::new();
    let length = HIDDEN.len();
    let get = format!(
        "GET /readyz HTTP/1.1\r\nHost: k\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
    );
    check(&target, &format!("{get}{HIDDEN}"), &[200]);
    let upgrade = "GET /readyz HTTP/1.1\r\nHost: k\r\nConnection: Upgrade, HTTP2-Settings, close\r\n\
                   Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n";
    check(&target, upgrade, &[200]);
    let websocket = "GET /readyz HTTP/1.1\r\nHost: k\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n\
                     Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";
    check(&target, websocket, &[200]);
    // A stranger is refused before the body is read; what comes after is not looked at.
    let post =
        format!("POST {MAPS} HTTP/1.1\r\nHost: k\r\nContent-Length: 1000000\r\n\r\n{HIDDEN}");
    assert_eq!(codes(&target.stranger(), &post), [401]);
    assert!(!target.kennel.log().contains("/smuggled"));
}
