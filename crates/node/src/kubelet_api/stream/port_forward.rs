//! Port-forward over SPDY: for each connection a pair of streams, one for data and one for an error message.

use std::collections::BTreeMap;
use std::io;
use std::pin::pin;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, copy, split};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::PortForwarder;
use super::spdy::{Connection, Stream};

/// How long one stream of a pair waits for the other.
const PAIR_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the client may continue to send after the pod has closed its side.
const HALF_CLOSED_TIMEOUT: Duration = Duration::from_secs(1);

/// Serves one client until it disconnects.
pub(super) async fn serve(mut connection: Connection, forwarder: PortForwarder) {
    let mut pairs = Pairs::default();
    let mut forwards = JoinSet::new();
    loop {
        let stream = tokio::select! {
            stream = connection.accept() => stream,
            Some(_) = forwards.join_next() => continue,
        };
        let Some(stream) = stream else {
            break;
        };
        if let Some((port, error, data)) = pairs.add(stream) {
            forwards.spawn(forward(forwarder.clone(), port, error, data));
        }
    }
    forwards.shutdown().await;
    connection.close().await;
}

/// A stream that waits for the other one of its pair.
struct Half {
    since: Instant,
    stream: Stream,
    is_data: bool,
}

/// Incomplete pairs by request id.
#[derive(Default)]
struct Pairs(BTreeMap<String, Half>);

impl Pairs {
    /// Adds a stream. Returns the port, the error stream and the data stream of a complete pair. A stream with invalid
    /// headers is dropped, which closes it.
    fn add(&mut self, stream: Stream) -> Option<(u16, Stream, Stream)> {
        self.0.retain(|_, half| half.since.elapsed() < PAIR_TIMEOUT);
        let headers = stream.headers();
        let is_data = match headers.get("streamtype") {
            Some("data") => true,
            Some("error") => false,
            _ => return None,
        };
        let port = headers.get("port")?.parse().ok().filter(|port| *port > 0)?;
        let request = headers.get("requestid").unwrap_or_default().to_owned();
        let half = Half {
            since: Instant::now(),
            stream,
            is_data,
        };
        match self.0.remove(&request) {
            Some(other) if other.is_data != is_data => {
                let (error, data) = if is_data {
                    (other, half)
                } else {
                    (half, other)
                };
                Some((port, error.stream, data.stream))
            }
            _ => {
                self.0.insert(request, half);
                None
            }
        }
    }
}

async fn forward(forwarder: PortForwarder, port: u16, mut error: Stream, data: Stream) {
    let connected = forwarder.runtime.connect(&forwarder.sandbox, port).await;
    let failure = match connected {
        Ok(connection) => {
            let copied = copy_both_ways(data, connection).await;
            copied.err().and_then(|error| connect_failure(&error))
        }
        Err(error) => Some(error.to_string()),
    };
    if let Some(why) = failure {
        let text = error_message(&forwarder, port, why);
        tracing::debug!("{text}");
        drop(error.write_all(text.as_bytes()).await);
    }
}

/// Copies both ways until the pod closes its side. Older kubectls close a connection only after we do.
async fn copy_both_ways(
    client: impl AsyncRead + AsyncWrite,
    pod: impl AsyncRead + AsyncWrite,
) -> io::Result<()> {
    let (mut from_client, mut to_client) = split(client);
    let (mut from_pod, mut to_pod) = split(pod);
    let mut to_pod_copied = pin!(async {
        copy(&mut from_client, &mut to_pod).await?;
        to_pod.shutdown().await
    });
    let mut to_client_copied = pin!(async {
        copy(&mut from_pod, &mut to_client).await?;
        to_client.shutdown().await
    });
    tokio::select! {
        received = &mut to_client_copied => {
            let late = tokio::time::timeout(HALF_CLOSED_TIMEOUT, to_pod_copied).await;
            received.and(late.unwrap_or(Ok(())))
        }
        sent = &mut to_pod_copied => {
            sent?;
            to_client_copied.await
        }
    }
}

/// The message of a connection that could not be made. A connection that was reset later just ends: kubectl closes
/// all others when it is told of one error, and resets its own connections as a matter of course.
fn connect_failure(error: &io::Error) -> Option<String> {
    if error.kind() == io::ErrorKind::Other {
        return Some(error.to_string());
    }
    tracing::debug!(%error, "a forwarded connection was reset");
    None
}

/// The kubelet's error text, unless the runtime has used it already.
fn error_message(forwarder: &PortForwarder, port: u16, why: String) -> String {
    if why.starts_with("error forwarding port ") {
        return why;
    }
    let PortForwarder { pod, uid, .. } = forwarder;
    format!("error forwarding port {port} to pod {pod}, uid {uid}: {why}")
}
