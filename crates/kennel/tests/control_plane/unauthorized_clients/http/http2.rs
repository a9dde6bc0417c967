//! What HTTP/2 makes possible: many requests at no cost for the client, headers without end, answers that
//! nobody takes.

use std::time::{Duration, Instant};

use super::frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, ENHANCE_YOUR_CALM, HEADERS, Http2, PING,
    PROTOCOL_ERROR, REFUSED_STREAM, RST_STREAM, SETTINGS, frame, get, literal,
};
use super::is_well;
use crate::unauthorized_clients::fixture::{SECRETS, Target};

/// The setting that says how much of each answer the client takes before it asks for more.
const INITIAL_WINDOW: u16 = 4;
/// Sent beside floods: what the server must not keep of them.
const GROWTH_MAX: u64 = 64 << 20;
/// A server that waits for a second hangs up well before this.
const SOON: Duration = Duration::from_secs(10);

/// A flood is sent until the server has had enough; then it says why, or is simply gone.
fn flood(target: &Target, frames: &[u8], times: usize) -> Option<u32> {
    let before = target.kennel.resident_bytes();
    let mut connection = Http2::open(&target.admin, &[]);
    for _ in 0..times {
        if connection.wire.send(frames).is_err() {
            break;
        }
    }
    let why = connection.given_up();
    let grown = target.kennel.resident_bytes().saturating_sub(before);
    assert!(grown < GROWTH_MAX, "{grown} bytes more than before");
    is_well(target);
    why
}

#[test]
fn requests_that_are_cancelled_at_once_end_the_connection() {
    let target = Target::new();
    let mut frames = Vec::new();
    for n in 0..5000 {
        let stream = 2 * n + 1;
        let flags = END_HEADERS | END_STREAM;
        frames.extend(frame(HEADERS, flags, stream, &get("/api/v1/nodes")));
        frames.extend(frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes()));
    }
    assert_eq!(flood(&target, &frames, 1), Some(ENHANCE_YOUR_CALM));
}

#[test]
fn headers_without_end_end_the_connection() {
    let target = Target::new();
    let more = literal(&[("x-more", &"x".repeat(10_000))]);
    let mut frames = frame(HEADERS, END_STREAM, 1, &get("/readyz"));
    for _ in 0..200 {
        frames.extend(frame(CONTINUATION, 0, 1, &more));
    }
    let why = flood(&target, &frames, 1);
    assert!(why.is_some_and(|code| code != 0), "{why:?}");
    // The same with nothing in them.
    let mut frames = frame(HEADERS, END_STREAM, 1, &get("/readyz"));
    for _ in 0..100_000 {
        frames.extend(frame(CONTINUATION, 0, 1, &[]));
    }
    let why = flood(&target, &frames, 1);
    assert!(why.is_some_and(|code| code != 0), "{why:?}");
}

/// A header said once and then only pointed at: a few bytes that stand for megabytes.
#[test]
fn headers_that_unfold_are_measured_unfolded() {
    let target = Target::new();
    let before = target.kennel.resident_bytes();
    let mut connection = Http2::open(&target.admin, &[]);
    // Literal, and to be remembered; then 10,000 times the newest one remembered.
    let mut headers = get("/readyz");
    headers.push(0x40);
    headers.extend([6, b'x', b'-', b'l', b'o', b'n', b'g']);
    headers.extend([127, 0x81, 0x1e]);
    headers.extend(vec![b'x'; 127 + 1 + 30 * 128]);
    headers.extend(vec![0x80 | 0x3e; 10_000]);
    connection.send(HEADERS, END_HEADERS | END_STREAM, 1, &headers);
    let frame = connection.find(|frame| matches!(frame.kind, HEADERS | RST_STREAM | 7));
    let frame = frame.expect("it is answered or refused");
    let body = (frame.kind == HEADERS).then(|| connection.next().unwrap().payload);
    assert_ne!(body.as_deref(), Some(&b"ok"[..]), "it was served");
    let grown = target.kennel.resident_bytes().saturating_sub(before);
    assert!(grown < GROWTH_MAX, "{grown} bytes more than before");
    is_well(&target);
}

#[test]
fn there_are_only_so_many_streams() {
    let target = Target::new();
    let mut connection = Http2::open(&target.admin, &[]);
    let mut frames = Vec::new();
    let path = format!("{SECRETS}?watch=1");
    for n in 0..1001 {
        let flags = END_HEADERS | END_STREAM;
        frames.extend(frame(HEADERS, flags, 2 * n + 1, &get(&path)));
    }
    connection.wire.send(&frames).unwrap();
    assert_eq!(connection.refused(2001), Some(REFUSED_STREAM));
    // Where one goes, another may come.
    connection.send(RST_STREAM, 0, 1, &8_u32.to_be_bytes());
    assert_eq!(connection.ask(2003, "/readyz"), "ok");
    is_well(&target);
}

#[test]
fn floods_of_small_talk_take_no_memory() {
    let target = Target::new();
    for talk in [
        frame(PING, 0, 0, b"12345678"),
        frame(SETTINGS, 0, 0, &[0, 4, 0, 1, 0, 0]),
    ] {
        // Ended or answered: either will do, as long as it is all the same to the others. A server that
        // waits for its answers to be read stops reading, and the flood gets stuck.
        let before = target.kennel.resident_bytes();
        let mut connection = Http2::open(&target.admin, &[]);
        for _ in 0..200 {
            if connection.wire.send(&talk.repeat(100)).is_err() {
                break;
            }
        }
        is_well(&target);
        let grown = target.kennel.resident_bytes().saturating_sub(before);
        assert!(grown < GROWTH_MAX, "{grown} bytes more than before");
    }
    // Data that is no data, on and on.
    let mut frames = frame(HEADERS, END_HEADERS, 1, &post(&[]));
    frames.extend(frame(DATA, 0, 1, &[]).repeat(100_000));
    let _why = flood(&target, &frames, 1);
}

fn post(more: &[(&str, &str)]) -> Vec<u8> {
    let path = "/api/v1/namespaces/default/configmaps";
    let usual = [
        (":method", "POST"),
        (":scheme", "https"),
        (":path", path),
        (":authority", "kennel"),
    ];
    literal(&[&usual[..], more].concat())
}

#[test]
fn what_http2_forbids_is_no_request() {
    let target = Target::new();
    let get = |more: &[(&str, &str)]| {
        let mut headers = vec![
            (":method", "GET"),
            (":scheme", "https"),
            (":path", "/readyz"),
        ];
        headers.extend(more);
        literal(&headers)
    };
    for (what, headers) in [
        ("a connection header", get(&[("connection", "close")])),
        ("chunks", get(&[("transfer-encoding", "chunked")])),
        ("an upgrade", get(&[("upgrade", "h2c")])),
        ("te", get(&[("te", "gzip")])),
        ("capitals", get(&[("X-Capital", "a")])),
        ("two paths", get(&[(":path", "/metrics")])),
        (
            "a late pseudo header",
            get(&[("a", "b"), (":authority", "k")]),
        ),
        ("an unknown one", get(&[(":unknown", "k")])),
        ("a line break", get(&[("a", "b\r\nc: d")])),
        (
            "no path",
            literal(&[
                (":method", "GET"),
                (":scheme", "https"),
                (":authority", "k"),
            ]),
        ),
        (
            "an empty path",
            literal(&[(":method", "GET"), (":scheme", "https"), (":path", "")]),
        ),
    ] {
        let mut connection = Http2::open(&target.admin, &[]);
        connection.send(HEADERS, END_HEADERS | END_STREAM, 1, &headers);
        assert_eq!(connection.refused(1), Some(PROTOCOL_ERROR), "{what}");
    }
    // What names no path may be heard, but is not served.
    for headers in [
        &[(":method", "GET"), (":scheme", "https")],
        &[(":method", "CONNECT"), (":authority", "kennel:443")],
    ] {
        let mut connection = Http2::open(&target.admin, &[]);
        connection.send(HEADERS, END_HEADERS | END_STREAM, 1, &literal(headers));
        let refused = connection.body(1);
        assert!(refused.contains("\"code\":400"), "{refused}");
    }
    // A body that is longer or shorter than announced.
    for announced in ["1", "100"] {
        let mut connection = Http2::open(&target.admin, &[]);
        let headers = post(&[("content-length", announced)]);
        connection.send(HEADERS, END_HEADERS, 1, &headers);
        connection.send(DATA, END_STREAM, 1, b"{\"metadata\":{\"name\":\"x\"}}");
        assert_eq!(connection.refused(1), Some(PROTOCOL_ERROR), "{announced}");
    }
    let gone = target
        .admin
        .ask("GET", "/api/v1/namespaces/default/configmaps/x", b"");
    assert_eq!(gone.code, 404, "something was stored");
    is_well(&target);
}

/// A refusal reaches a client that is still sending, and the connection is as good as before.
#[test]
fn an_early_refusal_arrives_and_the_connection_stays() {
    let target = Target::new();
    let mut connection = Http2::open(&target.stranger(), &[]);
    connection.send(HEADERS, END_HEADERS, 1, &post(&[]));
    for _ in 0..4 {
        connection.send(DATA, 0, 1, &[b' '; 16_000]);
    }
    let refused = connection.body(1);
    assert!(refused.contains("\"code\":401"), "{refused}");
    // Some of the body was already under way.
    connection.send(DATA, END_STREAM, 1, &[b' '; 16_000]);
    assert_eq!(connection.ask(3, "/readyz"), "ok");
    // What ends the whole connection is said before it ends, however much is still being sent.
    let mut connection = Http2::open(&target.stranger(), &[]);
    let mut frames = frame(DATA, 0, 5, &[b' '; 16_000]);
    frames.extend(frame(HEADERS, END_HEADERS, 0, &[]));
    frames.extend(frame(DATA, 0, 5, &[b' '; 16_000]).repeat(40));
    let _sent = connection.wire.send(&frames);
    assert_eq!(connection.given_up(), Some(PROTOCOL_ERROR));
}

#[test]
fn a_client_that_takes_no_answer_and_one_that_asks_nothing_are_left() {
    let target = Target::started(&["server", "--patience-seconds", "1"]);
    // It lets nothing through but keeps the connection lively.
    let mut deaf = Http2::open(&target.admin, &[(INITIAL_WINDOW, 0)]);
    deaf.send(HEADERS, END_HEADERS | END_STREAM, 1, &get("/readyz"));
    let started = Instant::now();
    while started.elapsed() < SOON {
        let ping = frame(PING, 0, 0, b"12345678");
        if deaf.wire.send(&ping).is_err() || deaf.next().is_err() {
            break;
        }
    }
    assert!(started.elapsed() < SOON, "the deaf one is still there");
    let mut idle = Http2::open(&target.admin, &[]);
    assert_eq!(idle.ask(1, "/readyz"), "ok");
    let started = Instant::now();
    assert_eq!(idle.given_up(), Some(0), "a friendly end");
    assert!(started.elapsed() < SOON, "the idle one is still there");
    is_well(&target);
}
