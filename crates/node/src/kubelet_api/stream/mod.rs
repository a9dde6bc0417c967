//! Streams between a client and a container (exec, attach, port-forward): the wire protocols, and the bridge to
//! [`crate::runtime::Session`].
//!
//! ```text
//!   upgrade ─┬─ SPDY/3.1 ── spdy::Connection ─┬─ spdy_session ──┐
//!            │                  ▲             └─ port_forward ──┼─▶ Runtime::connect
//!            └─ WebSocket ──────┴─ tunnel                       │
//!                   └───────────── websocket ── ClientStreams ──┴─▶ bridge ─▶ runtime::Session
//! ```

mod bridge;
mod exit_status;
#[doc(hidden)]
pub mod fuzz;
mod port_forward;
pub mod spdy;
mod spdy_session;
mod tunnel;
mod upgrade;
mod websocket;

pub(super) use self::upgrade::{StreamUse, Upgrade};

use std::sync::Arc;

use futures_util::future::BoxFuture;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;

use self::spdy::{Connection, Role};
use self::upgrade::Wire;
use crate::runtime::{Attachment, Result, Runtime, Session};

/// Starts the command, or attaches to the container, once the client's streams are open.
pub(super) type SessionFuture = BoxFuture<'static, Result<Session>>;

/// Connects a client to a command or a container until one of them ends.
pub(super) async fn serve_session(
    upgraded: OnUpgrade,
    upgrade: Upgrade,
    streams: Attachment,
    session: SessionFuture,
) {
    let Some(io) = upgraded_io(upgraded).await else {
        return;
    };
    match upgrade.wire {
        Wire::Spdy => {
            let connection = Connection::new(io, Role::Server);
            spdy_session::serve(connection, streams, session).await;
        }
        Wire::WebSocket => websocket::serve(io, streams, session).await,
    }
}

/// Connects to ports of one pod.
#[derive(Clone)]
pub(super) struct PortForwarder {
    pub(super) runtime: Arc<dyn Runtime>,
    pub(super) sandbox: String,
    /// `<name>_<namespace>`, for error messages.
    pub(super) pod: String,
    pub(super) uid: String,
}

/// Forwards ports until the client closes the connection.
pub(super) async fn serve_port_forward(
    upgraded: OnUpgrade,
    upgrade: Upgrade,
    forwarder: PortForwarder,
) {
    let Some(io) = upgraded_io(upgraded).await else {
        return;
    };
    let connection = match upgrade.wire {
        Wire::Spdy => Connection::new(io, Role::Server),
        Wire::WebSocket => Connection::new(tunnel::Tunnel::new(io).await, Role::Server),
    };
    port_forward::serve(connection, forwarder).await;
}

async fn upgraded_io(upgraded: OnUpgrade) -> Option<TokioIo<Upgraded>> {
    let log = |error: &hyper::Error| {
        tracing::debug!(%error, "the client closed the connection before the upgrade");
    };
    upgraded.await.inspect_err(log).ok().map(TokioIo::new)
}
