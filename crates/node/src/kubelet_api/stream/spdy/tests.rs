//! Two of our own ends, and one that knows no manners.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::time::timeout;

use super::*;

const DEADLINE: Duration = Duration::from_secs(10);

fn pair() -> (Connection, Connection) {
    let (a, b) = duplex(64 * 1024);
    (
        Connection::new(a, Role::Client),
        Connection::new(b, Role::Server),
    )
}

fn named(kind: &str) -> Headers {
    Headers::default().with("streamType", kind)
}

async fn within<T>(what: impl Future<Output = T>) -> T {
    timeout(DEADLINE, what).await.expect("in time")
}

#[tokio::test]
async fn bytes_go_both_ways_and_each_way_ends_by_itself() {
    let (client, mut server) = pair();
    let mut ours = client.open(named("data")).unwrap();
    let mut theirs = within(server.accept()).await.unwrap();
    assert_eq!(theirs.headers().get("streamtype"), Some("data"));
    ours.write_all(b"ping").await.unwrap();
    ours.shutdown().await.unwrap();
    let mut heard = String::new();
    within(theirs.read_to_string(&mut heard)).await.unwrap();
    assert_eq!(heard, "ping");
    theirs.write_all(b"pong").await.unwrap();
    drop(theirs);
    heard.clear();
    within(ours.read_to_string(&mut heard)).await.unwrap();
    assert_eq!(heard, "pong");
}

#[tokio::test]
async fn much_goes_through_many_streams_at_once() {
    const BYTES: usize = 1 << 20;
    let (client, mut server) = pair();
    let echo = tokio::spawn(async move {
        let mut tasks = tokio::task::JoinSet::new();
        while let Some(stream) = server.accept().await {
            tasks.spawn(async move {
                let (mut reader, mut writer) = tokio::io::split(stream);
                tokio::io::copy(&mut reader, &mut writer).await.unwrap();
                writer.shutdown().await.unwrap();
            });
        }
        tasks.join_all().await;
    });
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..8_u8 {
        let (mut reader, mut writer) = tokio::io::split(client.open(named("data")).unwrap());
        tasks.spawn(async move {
            writer.write_all(&vec![n; BYTES]).await.unwrap();
            writer.shutdown().await.unwrap();
        });
        tasks.spawn(async move {
            let mut back = Vec::new();
            reader.read_to_end(&mut back).await.unwrap();
            assert!(back.len() == BYTES && back.iter().all(|byte| *byte == n));
        });
    }
    within(tasks.join_all()).await;
    within(client.close()).await;
    within(echo).await.unwrap();
}

#[tokio::test]
async fn what_was_written_before_the_end_arrives() {
    let (client, mut server) = pair();
    let mut ours = client.open(named("error")).unwrap();
    let mut theirs = within(server.accept()).await.unwrap();
    theirs.write_all(&vec![7; 100_000]).await.unwrap();
    drop(theirs);
    let closing = tokio::spawn(server.close());
    let mut heard = Vec::new();
    within(ours.read_to_end(&mut heard)).await.unwrap();
    assert_eq!(heard.len(), 100_000);
    drop((ours, client));
    within(closing).await.unwrap();
}

#[tokio::test]
async fn hanging_up_is_noticed() {
    let (client, mut server) = pair();
    let mut ours = client.open(named("data")).unwrap();
    let stream = within(server.accept()).await.unwrap();
    drop((stream, server));
    within(client.hung_up()).await;
    let mut heard = Vec::new();
    within(ours.read_to_end(&mut heard)).await.unwrap();
    assert!(client.open(named("data")).is_err());
}

/// An end that says what it is told to, byte by byte.
async fn rude(bytes: &[u8]) -> (DuplexStream, Connection) {
    let (mut raw, io) = duplex(64 * 1024);
    let connection = Connection::new(io, Role::Server);
    within(raw.write_all(bytes)).await.unwrap();
    (raw, connection)
}

#[tokio::test]
async fn pings_are_answered_with_their_number() {
    let ping = [0x80, 3, 0, 6, 0, 0, 0, 4, 0, 0, 0, 9];
    let (mut raw, _connection) = rude(&ping).await;
    let mut answer = [0; 12];
    within(raw.read_exact(&mut answer)).await.unwrap();
    assert_eq!(answer, ping);
}

#[tokio::test]
async fn a_peer_that_breaks_the_rules_is_hung_up_on() {
    let cases: [&[u8]; 4] = [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\nmore and more",
        // A stream with an even number, from a client.
        &[0x80, 3, 0, 1, 0, 0, 0, 10, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0],
        &[0x80, 2, 0, 6, 0, 0, 0, 4, 0, 0, 0, 1],
        &[0x80, 3, 0, 1, 0, 0xff, 0xff, 0xff],
    ];
    for bytes in cases {
        let (mut raw, mut connection) = rude(bytes).await;
        // The first looks like a long data frame, of which the rest never comes.
        drop(raw.shutdown().await);
        assert!(within(connection.accept()).await.is_none(), "{bytes:x?}");
        within(connection.hung_up()).await;
    }
}

#[tokio::test]
async fn too_many_streams_are_refused_one_by_one() {
    let (client, mut server) = pair();
    let mut taken = Vec::new();
    let mut ours = Vec::new();
    for _ in 0..connection::STREAMS_MAX {
        ours.push(client.open(named("data")).unwrap());
        taken.push(within(server.accept()).await.unwrap());
    }
    assert!(client.open(named("data")).is_err());
    // Those that are forgotten on one side only count on the other.
    drop(ours.pop());
    let mut refused = client.open(named("data")).unwrap();
    let mut heard = Vec::new();
    let error = within(refused.read_to_end(&mut heard)).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
}
