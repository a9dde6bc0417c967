//! Commands and ports over WebSocket, as recent kubectls ask for them.

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::duplex;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::bench::{Bench, DEADLINE};
use super::spdy::echo_through;
use crate::kubelet_api::stream::spdy::{self, Connection};

type Socket = WebSocketStream<TokioIo<Upgraded>>;

async fn connect(bench: &Bench, path: &str, protocol: &str) -> Socket {
    let headers = [
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("sec-websocket-protocol", protocol),
    ];
    let io = bench.upgrade(path, &headers).await;
    WebSocketStream::from_raw_socket(io, Role::Client, None).await
}

/// What came on a channel until the end, by channel.
async fn hear(socket: &mut Socket) -> [String; 5] {
    let mut heard: [Vec<u8>; 5] = Default::default();
    while let Some(message) = timeout(DEADLINE, socket.next()).await.expect("in time") {
        if let Ok(Message::Binary(bytes)) = message {
            heard[usize::from(bytes[0])].extend_from_slice(&bytes[1..]);
        }
    }
    heard.map(|bytes| String::from_utf8(bytes).unwrap())
}

#[tokio::test]
async fn a_command_says_what_it_has_to_and_how_it_ended() {
    let bench = Bench::start().await;
    let query = "command=say&command=3&command=out&command=err&stdout=true&stderr=true";
    for protocol in ["v5.channel.k8s.io, v4.channel.k8s.io", "v4.channel.k8s.io"] {
        let mut socket = connect(&bench, &format!("/exec/ns/p/c?{query}"), protocol).await;
        let [_, out, err, status, _] = hear(&mut socket).await;
        assert_eq!((out.as_str(), err.as_str()), ("out", "err"));
        assert!(status.contains("\"reason\":\"ExitCode\""), "{status}");
    }
}

#[tokio::test]
async fn the_end_of_input_is_heard() {
    let bench = Bench::start().await;
    let path = "/attach/ns/p/c?stdin=true&stdout=true";
    let mut socket = connect(&bench, path, "v5.channel.k8s.io").await;
    for message in [&b"\0hello "[..], b"\0world", &[255, 0]] {
        socket
            .send(Message::Binary(Bytes::copy_from_slice(message)))
            .await
            .unwrap();
    }
    let [_, out, _, status, _] = hear(&mut socket).await;
    assert_eq!(out, "hello world");
    assert!(status.contains("Success"), "{status}");
}

#[tokio::test]
async fn pings_are_answered_while_nothing_else_happens() {
    let bench = Bench::start().await;
    let path = "/exec/ns/p/c?command=hold&stdout=true";
    let mut socket = connect(&bench, path, "v5.channel.k8s.io").await;
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

/// Wraps what a SPDY client says into messages, as kubectl does.
async fn wrap(mut socket: Socket, io: tokio::io::DuplexStream) {
    let (mut reader, mut writer) = tokio::io::split(io);
    let mut piece = vec![0; 4096];
    loop {
        tokio::select! {
            read = tokio::io::AsyncReadExt::read(&mut reader, &mut piece) => {
                let Ok(length @ 1..) = read else { return };
                let message = Message::Binary(Bytes::copy_from_slice(&piece[..length]));
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
async fn ports_are_reached_through_spdy_in_websocket() {
    let bench = Bench::start().await;
    let protocol = "SPDY/3.1+portforward.k8s.io";
    let socket = connect(&bench, "/portForward/ns/p", protocol).await;
    let (near, far) = duplex(4096);
    tokio::spawn(wrap(socket, far));
    echo_through(&Connection::new(near, spdy::Role::Client)).await;
}
