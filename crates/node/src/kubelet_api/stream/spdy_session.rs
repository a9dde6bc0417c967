//! A session over SPDY: one SPDY stream for each of stdin, stdout, stderr, error and resize, named in its headers.

use std::time::Duration;

use super::SessionFuture;
use super::bridge::{ClientStreams, bridge};
use super::spdy::{Connection, Stream};
use crate::runtime::{Attachment, Reader, Writer};

/// Time for the client to open the streams that it requested.
const STREAMS_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) async fn serve(mut connection: Connection, streams: Attachment, session: SessionFuture) {
    let opened = tokio::time::timeout(
        STREAMS_TIMEOUT,
        OpenStreams::default().complete(&mut connection, streams),
    );
    match opened.await {
        Ok(Some(client)) => bridge(client, session, connection.disconnected()).await,
        Ok(None) => tracing::debug!("a client disconnected before it opened its streams"),
        Err(_) => tracing::debug!("timed out waiting for client to create streams"),
    }
    connection.close().await;
}

/// The streams that the client has opened so far.
#[derive(Default)]
struct OpenStreams {
    stdin: Option<Stream>,
    stdout: Option<Stream>,
    stderr: Option<Stream>,
    error: Option<Stream>,
    resize: Option<Stream>,
}

impl OpenStreams {
    /// Waits for all requested streams. `None` if the client disconnects.
    async fn complete(
        mut self,
        connection: &mut Connection,
        requested: Attachment,
    ) -> Option<ClientStreams> {
        while !self.has(requested) {
            let mut stream = connection.accept().await?;
            let slot = match stream.headers().get("streamtype").unwrap_or_default() {
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
            *slot = Some(stream);
        }
        let reader = |stream: Option<Stream>| stream.map(|stream| Box::new(stream) as Reader);
        let writer = |stream: Option<Stream>| stream.map(|stream| Box::new(stream) as Writer);
        Some(ClientStreams {
            stdin: reader(self.stdin),
            stdout: writer(self.stdout),
            stderr: writer(self.stderr),
            error: Box::new(self.error?),
            resize: reader(self.resize),
        })
    }

    fn has(&self, requested: Attachment) -> bool {
        let open = |requested: bool, stream: &Option<Stream>| !requested || stream.is_some();
        open(requested.stdin, &self.stdin)
            && open(requested.stdout, &self.stdout)
            && open(requested.stderr, &self.stderr)
            && open(requested.tty, &self.resize)
            && self.error.is_some()
    }
}
