//! A SPDY client for containerd's streaming server: exec, attach and port-forward.
//!
//! The client must open exactly the streams of the request that returned the URL; otherwise the server waits in vain.

mod port_forward;
mod session;

use std::fmt::Display;

use http::header::{CONNECTION, HOST, UPGRADE};
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::{Duration, timeout};

use super::{Connection, PROTOCOL, Role};
use crate::runtime::{Attachment, Error, Result, Session};

pub use self::port_forward::PortForward;

/// The header that negotiates the subprotocol.
const STREAM_PROTOCOL: &str = "X-Stream-Protocol-Version";
/// Exec and attach.
const SESSION_PROTOCOL: &str = "v4.channel.k8s.io";
const PORT_FORWARD_PROTOCOL: &str = "portforward.k8s.io";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest error response.
const ERROR_BYTES_MAX: usize = 4 * 1024;

/// Opens the streams of a prepared exec or attach request.
pub async fn session(url: &str, streams: Attachment) -> Result<Session> {
    let connection = connect(url, SESSION_PROTOCOL).await?;
    session::open(connection, streams)
}

pub async fn port_forward(url: &str, port: u16) -> Result<PortForward> {
    let connection = connect(url, PORT_FORWARD_PROTOCOL).await?;
    PortForward::open(connection, port)
}

async fn connect(url: &str, protocol: &str) -> Result<Connection> {
    match timeout(CONNECT_TIMEOUT, upgrade(url, protocol)).await {
        Ok(connection) => connection,
        Err(_) => Err(Error::TimedOut(format!("{url} did not answer in time"))),
    }
}

async fn upgrade(url: &str, protocol: &str) -> Result<Connection> {
    let uri: Uri = url.parse().map_err(unreachable(url))?;
    let authority = uri.authority().ok_or("no address");
    let authority = authority.map_err(unreachable(url))?;
    let address = (
        authority.host().trim_matches(['[', ']']),
        authority.port_u16().unwrap_or(80),
    );
    let socket = TcpStream::connect(address).await;
    let socket = socket.map_err(unreachable(url))?;
    socket.set_nodelay(true).map_err(unreachable(url))?;
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let request = Request::post(path)
        .header(HOST, authority.as_str())
        .header(CONNECTION, "Upgrade")
        .header(UPGRADE, PROTOCOL)
        .header(STREAM_PROTOCOL, protocol)
        .body(Empty::<bytes::Bytes>::new())
        .map_err(unreachable(url))?;
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(socket)).await;
    let (mut sender, connection) = handshake.map_err(unreachable(url))?;
    // The task ends with the upgrade, or with the response.
    tokio::spawn(connection.with_upgrades());
    let sent = sender.send_request(request).await;
    let response = sent.map_err(unreachable(url))?;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Err(upgrade_error(response).await);
    }
    let upgraded = hyper::upgrade::on(response).await;
    let upgraded = upgraded.map_err(unreachable(url))?;
    Ok(Connection::new(TokioIo::new(upgraded), Role::Client))
}

fn unreachable<E: Display>(url: &str) -> impl FnOnce(E) -> Error {
    move |error| Error::Unavailable(format!("{url}: {error}"))
}

async fn upgrade_error(response: http::Response<Incoming>) -> Error {
    let status = response.status();
    let body = Limited::new(response.into_body(), ERROR_BYTES_MAX)
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
