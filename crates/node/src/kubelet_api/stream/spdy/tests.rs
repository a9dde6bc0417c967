//! Two connections of ours with each other, and one with a peer that violates the protocol.

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
async fn the_two_directions_of_a_stream_close_independently() {
    let (client, mut server) = pair();
    let mut ours = client.open(named("data")).unwrap();
    let mut theirs = within(server.accept()).await.unwrap();
    assert_eq!(theirs.headers().get("streamtype"), Some("data"));
    ours.write_all(b"ping").await.unwrap();
    ours.shutdown().await.unwrap();
    let mut received = String::new();
    within(theirs.read_to_string(&mut received)).await.unwrap();
    assert_eq!(received, "ping");
    theirs.write_all(b"pong").await.unwrap();
    drop(theirs);
    received.clear();
    within(ours.read_to_string(&mut received)).await.unwrap();
    assert_eq!(received, "pong");
}

#[tokio::test]
async fn many_streams_transfer_much_data_concurrently() {
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
async fn data_written_before_the_close_arrives() {
    let (client, mut server) = pair();
    let mut ours = client.open(named("error")).unwrap();
    let mut theirs = within(server.accept()).await.unwrap();
    theirs.write_all(&vec![7; 100_000]).await.unwrap();
    drop(theirs);
    let closing = tokio::spawn(server.close());
    let mut received = Vec::new();
    within(ours.read_to_end(&mut received)).await.unwrap();
    assert_eq!(received.len(), 100_000);
    drop((ours, client));
    within(closing).await.unwrap();
}

#[tokio::test]
async fn a_disconnect_is_noticed() {
    let (client, mut server) = pair();
    let mut ours = client.open(named("data")).unwrap();
    let stream = within(server.accept()).await.unwrap();
    drop((stream, server));
    within(client.disconnected()).await;
    let mut received = Vec::new();
    within(ours.read_to_end(&mut received)).await.unwrap();
    assert!(client.open(named("data")).is_err());
}

/// A connection whose peer has sent these bytes.
async fn with_raw_peer(bytes: &[u8]) -> (DuplexStream, Connection) {
    let (mut raw, io) = duplex(64 * 1024);
    let connection = Connection::new(io, Role::Server);
    within(raw.write_all(bytes)).await.unwrap();
    (raw, connection)
}

#[tokio::test]
async fn pings_are_answered_with_their_id() {
    let ping = [0x80, 3, 0, 6, 0, 0, 0, 4, 0, 0, 0, 9];
    let (mut raw, _connection) = with_raw_peer(&ping).await;
    let mut reply = [0; 12];
    within(raw.read_exact(&mut reply)).await.unwrap();
    assert_eq!(reply, ping);
}

#[tokio::test]
async fn a_protocol_violation_ends_the_connection() {
    let cases: [&[u8]; 4] = [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\nmore and more",
        // A client must not open streams with even ids.
        &[0x80, 3, 0, 1, 0, 0, 0, 10, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0],
        &[0x80, 2, 0, 6, 0, 0, 0, 4, 0, 0, 0, 1],
        &[0x80, 3, 0, 1, 0, 0xff, 0xff, 0xff],
    ];
    for bytes in cases {
        let (mut raw, mut connection) = with_raw_peer(bytes).await;
        // The first case parses as a long data frame that never completes.
        drop(raw.shutdown().await);
        assert!(within(connection.accept()).await.is_none(), "{bytes:x?}");
        within(connection.disconnected()).await;
    }
}

#[tokio::test]
async fn too_many_streams_are_refused_one_by_one() {
    let (client, mut server) = pair();
    let mut accepted = Vec::new();
    let mut ours = Vec::new();
    for _ in 0..connection::STREAMS_MAX {
        ours.push(client.open(named("data")).unwrap());
        accepted.push(within(server.accept()).await.unwrap());
    }
    assert!(client.open(named("data")).is_err());
    // The server still holds the stream that the client has dropped.
    drop(ours.pop());
    let mut refused = client.open(named("data")).unwrap();
    let mut received = Vec::new();
    let error = within(refused.read_to_end(&mut received))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
}
