//! Streams between a client of the API and a container: what they look like on the wire, and the bridge to
//! [`crate::runtime::Session`].
//!
//! ```text
//!   upgrade ─┬─ SPDY/3.1 ── spdy::Connection ─┬─ remote ──┐
//!            │                  ▲             └─ forward ─┼─▶ runtime::connect
//!            └─ WebSocket ──────┴─ tunnel                 │
//!                   └───────────── channels ── Remote ────┴─▶ bridge ─▶ runtime::Session
//! ```

mod bridge;
mod channels;
mod forward;
mod remote;
pub mod spdy;
mod status;
mod tunnel;
mod upgrade;

pub(super) use self::upgrade::{Upgrade, Use};

use std::sync::Arc;

use futures_util::future::BoxFuture;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;

use self::spdy::{Connection, Role};
use self::upgrade::Wire;
use crate::runtime::{Attachment, Result, Runtime, Session};

/// Something that is begun once the streams are there.
pub(super) type Begin = BoxFuture<'static, Result<Session>>;

/// Connects a client with a command or a container, until one of them ends.
pub(super) async fn command(
    upgraded: OnUpgrade,
    upgrade: Upgrade,
    streams: Attachment,
    begin: Begin,
) {
    let io = match upgraded.await {
        Ok(io) => TokioIo::new(io),
        Err(error) => return tracing::debug!(%error, "a client did not wait for its streams"),
    };
    match upgrade.wire {
        Wire::Spdy => {
            let connection = Connection::new(io, Role::Server);
            remote::serve(connection, streams, begin).await;
        }
        Wire::WebSocket => channels::serve(io, streams, begin).await,
    }
}

/// Ports of a pod, and where they are.
#[derive(Clone)]
pub(super) struct Ports {
    pub(super) runtime: Arc<dyn Runtime>,
    pub(super) sandbox: String,
    /// `<namespace>/<name>`, as messages name it.
    pub(super) pod: String,
    pub(super) uid: String,
}

/// Connects a client with ports of a pod, until it hangs up.
pub(super) async fn ports(upgraded: OnUpgrade, upgrade: Upgrade, ports: Ports) {
    let io = match upgraded.await {
        Ok(io) => TokioIo::new(io),
        Err(error) => return tracing::debug!(%error, "a client did not wait for its streams"),
    };
    let connection = match upgrade.wire {
        Wire::Spdy => Connection::new(io, Role::Server),
        Wire::WebSocket => Connection::new(tunnel::Tunnel::new(io).await, Role::Server),
    };
    forward::serve(connection, ports).await;
}
