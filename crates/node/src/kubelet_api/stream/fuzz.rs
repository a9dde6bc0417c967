//! What must hold for any bytes of a WebSocket client: the fuzz target of `kennel-testkit` calls this, and nothing else does.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
use tokio::runtime::Builder;
use tokio::time::timeout;

use super::websocket;
use crate::runtime::Attachment;

/// More than an input, so that it can be written before anybody reads.
const PIPE_BYTES: usize = 1 << 20;
/// Far longer than a session that has lost its client takes to end.
const END_TIMEOUT: Duration = Duration::from_secs(30);

/// A session ends when its client has sent these bytes and disconnected.
pub fn websocket(input: &[u8]) {
    let runtime = Builder::new_current_thread().enable_time().build();
    let runtime = runtime.expect("a runtime without I/O needs nothing");
    let ended = runtime.block_on(async {
        let (client, server) = duplex(PIPE_BYTES);
        let (mut answers, mut requests) = tokio::io::split(client);
        let streams = Attachment {
            stdin: true,
            stdout: true,
            stderr: true,
            tty: true,
        };
        let read = tokio::spawn(async move {
            let mut all = Vec::new();
            drop(answers.read_to_end(&mut all).await);
        });
        drop(requests.write_all(input).await);
        drop(requests.shutdown().await);
        let session = Box::pin(std::future::pending());
        let ended = timeout(END_TIMEOUT, websocket::serve(server, streams, session)).await;
        read.abort();
        ended
    });
    assert!(ended.is_ok(), "the session does not end");
}
