//! Commands and ports over WebSocket, as recent kubectls use them.

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::duplex;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::fixture::{DEADLINE, Fixture};
use super::spdy::echo_through;
use crate::kubelet_api::stream::spdy::{self, Connection};

type Socket = WebSocketStream<TokioIo<Upgraded>>;

async fn connect(fixture: &Fixture, path: &str, protocol: &str) -> Socket {
    let headers = [
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("sec-websocket-protocol", protocol),
    ];
    let io = fixture.upgrade(path, &headers).await;
    WebSocketStream::from_raw_socket(io, Role::Client, None).await
}

/// Everything received until the end, by channel.
async fn receive_all(socket: &mut Socket) -> [String; 5] {
    let mut received: [Vec<u8>; 5] = Default::default();
    while let Some(message) = timeout(DEADLINE, socket.next()).await.expect("in time") {
        if let Ok(Message::Binary(bytes)) = message {
            received[usize::from(bytes[0])].extend_from_slice(&bytes[1..]);
        }
    }
    received.map(|bytes| String::from_utf8(bytes).unwrap())
}

#[tokio::test]
async fn a_command_sends_its_output_and_exit_status() {
    let fixture = Fixture::start().await;
    let query = "command=say&command=3&command=out&command=err&stdout=true&stderr=true";
    for protocol in ["v5.channel.k8s.io, v4.channel.k8s.io", "v4.channel.k8s.io"] {
        let mut socket = connect(&fixture, &format!("/exec/ns/p/c?{query}"), protocol).await;
        let [_, out, err, status, _] = receive_all(&mut socket).await;
        assert_eq!((out.as_str(), err.as_str()), ("out", "err"));
        assert!(status.contains("\"reason\":\"ExitCode\""), "{status}");
    }
}

#[tokio::test]
async fn the_end_of_input_is_passed_on() {
    let fixture = Fixture::start().await;
    let path = "/attach/ns/p/c?stdin=true&stdout=true";
    let mut socket = connect(&fixture, path, "v5.channel.k8s.io").await;
    for message in [&b"\0hello "[..], b"\0world", &[255, 0]] {
        socket
            .send(Message::Binary(Bytes::copy_from_slice(message)))
            .await
            .unwrap();
    }
    let [_, out, _, status, _] = receive_all(&mut socket).await;
    assert_eq!(out, "hello world");
    assert!(status.contains("Success"), "{status}");
}

#[tokio::test]
async fn pings_are_answered_on_an_idle_connection() {
    let fixture = Fixture::start().await;
    let path = "/exec/ns/p/c?command=hold&stdout=true";
    let mut socket = connect(&fixture, path, "v5.channel.k8s.io").await;
    socket
        .send(Message::Ping(Bytes::from_static(b"you?")))
        .await
        .unwrap();
    loop {
        let message = timeout(DEADLINE, socket.next()).await.expect("in time");
        if let Message::Pong(answer) = message.unwrap().unwrap() {
            assert_eq!(answer, "you?");
            return;
        }
    }
}

/// Tunnels a SPDY client through WebSocket messages, as kubectl does.
async fn tunnel(mut socket: Socket, io: tokio::io::DuplexStream) {
    let (mut reader, mut writer) = tokio::io::split(io);
    let mut buffer = vec![0; 4096];
    loop {
        tokio::select! {
            read = tokio::io::AsyncReadExt::read(&mut reader, &mut buffer) => {
                let Ok(length @ 1..) = read else { return };
                let message = Message::Binary(Bytes::copy_from_slice(&buffer[..length]));
                socket.send(message).await.unwrap();
            }
            Some(Ok(message)) = socket.next() => {
                let data = message.into_data();
                tokio::io::AsyncWriteExt::write_all(&mut writer, &data).await.unwrap();
            }
        }
    }
}

#[tokio::test]
async fn ports_are_forwarded_through_spdy_in_websocket() {
    let fixture = Fixture::start().await;
    let protocol = "SPDY/3.1+portforward.k8s.io";
    let socket = connect(&fixture, "/portForward/ns/p", protocol).await;
    let (near, far) = duplex(4096);
    tokio::spawn(tunnel(socket, far));
    echo_through(&Connection::new(near, spdy::Role::Client)).await;
}
