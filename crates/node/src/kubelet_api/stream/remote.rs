//! A client's streams over SPDY: one for each, told apart by what it says of them.

use std::time::Duration;

use super::Begin;
use super::bridge::{Remote, bridge};
use super::spdy::{Connection, Stream};
use crate::runtime::{Attachment, Reader, Writer};

/// How long a client has to open the streams it asked for.
const PATIENCE: Duration = Duration::from_secs(30);

/// Serves one client.
pub(super) async fn serve(mut connection: Connection, streams: Attachment, begin: Begin) {
    let opened = tokio::time::timeout(
        PATIENCE,
        Opened::default().complete(&mut connection, streams),
    );
    match opened.await {
        Ok(Some(remote)) => bridge(remote, begin, connection.hung_up()).await,
        Ok(None) => tracing::debug!("a client has gone before it opened its streams"),
        Err(_) => tracing::debug!("timed out waiting for client to create streams"),
    }
    connection.close().await;
}

/// The streams that have come so far.
#[derive(Default)]
struct Opened {
    stdin: Option<Stream>,
    stdout: Option<Stream>,
    stderr: Option<Stream>,
    error: Option<Stream>,
    resize: Option<Stream>,
}

impl Opened {
    /// Waits for all that were asked for.
    async fn complete(mut self, connection: &mut Connection, asked: Attachment) -> Option<Remote> {
        while !self.has(asked) {
            let mut stream = connection.accept().await?;
            let place = match stream.headers().get("streamtype").unwrap_or_default() {
                "stdin" => &mut self.stdin,
                "stdout" => &mut self.stdout,
                "stderr" => &mut self.stderr,
                "error" => &mut self.error,
                "resize" => &mut self.resize,
                other => {
                    tracing::debug!("unexpected stream type: {other:?}");
                    stream.finish();
                    continue;
                }
            };
            *place = Some(stream);
        }
        let reader = |stream: Option<Stream>| stream.map(|stream| Box::new(stream) as Reader);
        let writer = |stream: Option<Stream>| stream.map(|stream| Box::new(stream) as Writer);
        Some(Remote {
            stdin: reader(self.stdin),
            stdout: writer(self.stdout),
            stderr: writer(self.stderr),
            error: Box::new(self.error?),
            resize: reader(self.resize),
        })
    }

    fn has(&self, asked: Attachment) -> bool {
        let there = |asked: bool, stream: &Option<Stream>| !asked || stream.is_some();
        there(asked.stdin, &self.stdin)
            && there(asked.stdout, &self.stdout)
            && there(asked.stderr, &self.stderr)
            && there(asked.tty, &self.resize)
            && self.error.is_some()
    }
}
