//! Asking another server for streams: containerd's, for exec, attach and port-forward.
//!
//! The streams it expects are those it was told of when it gave the address away; asking for others makes it
//! wait for nothing.

mod forward;
mod session;

use http::header::{CONNECTION, HOST, UPGRADE};
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::{Duration, timeout};

use super::{Connection, PROTOCOL, Role};
use crate::runtime::{Attachment, Error, Result, Session};

pub use self::forward::Forward;

/// By which clients and servers of streams agree on what the streams are.
const STREAM_PROTOCOL: &str = "X-Stream-Protocol-Version";
/// Streams of a command: one for its status among them.
const COMMAND_PROTOCOL: &str = "v4.channel.k8s.io";
/// Pairs of streams, one pair per connection.
const FORWARD_PROTOCOL: &str = "portforward.k8s.io";
/// How long a server on this machine has to answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// How much of a refusal is read.
const REFUSAL_BYTES_MAX: usize = 4 * 1024;

/// Takes up a command that was asked for: its address, and the streams it was asked for with.
pub async fn exec(url: &str, streams: Attachment) -> Result<Session> {
    let connection = dial(url, COMMAND_PROTOCOL).await?;
    session::over(connection, streams)
}

/// Takes part in a container.
pub async fn attach(url: &str, streams: Attachment) -> Result<Session> {
    exec(url, streams).await
}

/// A connection to a port.
pub async fn port_forward(url: &str, port: u16) -> Result<Forward> {
    let connection = dial(url, FORWARD_PROTOCOL).await?;
    Forward::over(connection, port)
}

async fn dial(url: &str, protocol: &str) -> Result<Connection> {
    match timeout(PATIENCE, upgrade(url, protocol)).await {
        Ok(connection) => connection,
        Err(_) => Err(Error::TimedOut(format!("{url} did not answer in time"))),
    }
}

async fn upgrade(url: &str, protocol: &str) -> Result<Connection> {
    let unreachable = |error: &dyn std::fmt::Display| Error::Unavailable(format!("{url}: {error}"));
    let uri: Uri = url.parse().map_err(|error| unreachable(&error))?;
    let authority = uri.authority().ok_or_else(|| unreachable(&"no address"))?;
    let address = (
        authority.host().trim_matches(['[', ']']),
        authority.port_u16().unwrap_or(80),
    );
    let socket = TcpStream::connect(address)
        .await
        .map_err(|error| unreachable(&error))?;
    socket
        .set_nodelay(true)
        .map_err(|error| unreachable(&error))?;
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let request = Request::post(path)
        .header(HOST, authority.as_str())
        .header(CONNECTION, "Upgrade")
        .header(UPGRADE, PROTOCOL)
        .header(STREAM_PROTOCOL, protocol)
        .body(Empty::<bytes::Bytes>::new())
        .map_err(|error| unreachable(&error))?;
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(socket)).await;
    let (mut sender, connection) = handshake.map_err(|error| unreachable(&error))?;
    // It ends with the upgrade, or with the answer.
    tokio::spawn(connection.with_upgrades());
    let sent = sender.send_request(request).await;
    let response = sent.map_err(|error| unreachable(&error))?;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Err(refusal(response).await);
    }
    let upgraded = hyper::upgrade::on(response).await;
    let upgraded = upgraded.map_err(|error| unreachable(&error))?;
    Ok(Connection::new(TokioIo::new(upgraded), Role::Client))
}

/// What a server said that did not give the streams.
async fn refusal(response: http::Response<Incoming>) -> Error {
    let status = response.status();
    let body = Limited::new(response.into_body(), REFUSAL_BYTES_MAX)
        .collect()
        .await;
    let body = body
        .map(http_body_util::Collected::to_bytes)
        .unwrap_or_default();
    let text = String::from_utf8_lossy(&body);
    Error::Failed(format!(
        "unable to upgrade connection: {status}: {}",
        text.trim()
    ))
}
