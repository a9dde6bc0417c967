//! Ports of a pod over SPDY: for each connection a pair of streams, one for data and one for what went wrong.

use std::collections::BTreeMap;
use std::io;
use std::pin::pin;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, copy, split};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::Ports;
use super::spdy::{Connection, Stream};

/// How long one stream of a pair waits for the other.
const PATIENCE: Duration = Duration::from_secs(30);
/// What a client may go on to say to a pod that has said its last word.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Serves one client until it hangs up.
pub(super) async fn serve(mut connection: Connection, ports: Ports) {
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
            forwards.spawn(forward(ports.clone(), port, error, data));
        }
    }
    // Nobody is left to forward for.
    forwards.shutdown().await;
    connection.close().await;
}

/// One stream of a pair that waits for the other.
struct Half {
    since: Instant,
    stream: Stream,
    is_data: bool,
}

/// Streams that have come alone so far.
#[derive(Default)]
struct Pairs(BTreeMap<String, Half>);

impl Pairs {
    /// Takes in a stream. A pair: the port, the stream for what goes wrong, and the one for data. Those that
    /// make no sense end at once.
    fn add(&mut self, stream: Stream) -> Option<(u16, Stream, Stream)> {
        self.0.retain(|_, half| half.since.elapsed() < PATIENCE);
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

async fn forward(ports: Ports, port: u16, mut error: Stream, data: Stream) {
    let ended = match ports.runtime.connect(&ports.sandbox, port).await {
        Ok(connection) => exchange(data, connection)
            .await
            .or_else(|error| never_came_about(&error)),
        Err(error) => Err(error.to_string()),
    };
    if let Err(why) = ended {
        let text = told(&ports, port, why);
        tracing::debug!("{text}");
        drop(error.write_all(text.as_bytes()).await);
    }
}

/// Carries both ways until the pod has said everything. Older kubectls hang up only when we do.
async fn exchange(
    client: impl AsyncRead + AsyncWrite,
    pod: impl AsyncRead + AsyncWrite,
) -> io::Result<()> {
    let (mut from_client, mut to_client) = split(client);
    let (mut from_pod, mut to_pod) = split(pod);
    let mut there = pin!(async {
        copy(&mut from_client, &mut to_pod).await?;
        to_pod.shutdown().await
    });
    let mut back = pin!(async {
        copy(&mut from_pod, &mut to_client).await?;
        to_client.shutdown().await
    });
    tokio::select! {
        said = &mut back => {
            let late = tokio::time::timeout(LAST_WORDS, there).await;
            said.and(late.unwrap_or(Ok(())))
        }
        asked = &mut there => {
            asked?;
            back.await
        }
    }
}

/// Why a connection never came about. One that did, and that one side broke off later, just ends: kubectl would
/// give up all others for one that it is told of, and breaks off its own as a matter of course.
fn never_came_about(error: &io::Error) -> Result<(), String> {
    if error.kind() == io::ErrorKind::Other {
        return Err(error.to_string());
    }
    tracing::debug!(%error, "a forwarded connection was broken off");
    Ok(())
}

/// Why a port cannot be reached, unless the runtime has said it in the same words already.
fn told(ports: &Ports, port: u16, why: String) -> String {
    if why.starts_with("error forwarding port ") {
        return why;
    }
    let Ports { pod, uid, .. } = ports;
    format!("error forwarding port {port} to pod {pod}, uid {uid}: {why}")
}
