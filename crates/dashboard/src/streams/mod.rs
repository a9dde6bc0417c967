//! Streams of what is watched: all DaemonSets, and one.

mod daemonset;
mod overview;
mod picture;
mod rollout;
pub(crate) mod sse;

use std::sync::Arc;

use http::Response;
use kennel_inspect::live::{Connection as Watched, View};
use kennel_inspect::snapshot;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio_util::sync::CancellationToken;

use self::daemonset::DaemonSetStream;
use self::overview::OverviewStream;
use self::sse::Messages;
use crate::app::App;
use crate::failure::Failure;
use crate::protocol::Connection;
use crate::reply::Body;
use crate::route::{Query, SetName};
use crate::watching::Watches;

pub(crate) async fn overview(
    app: &Arc<App>,
    seat: OwnedSemaphorePermit,
    stop: CancellationToken,
) -> Result<Response<Body>, Failure> {
    let watching = Watching::new(app.watching.watches().await?);
    Ok(sse::response(OverviewStream::new(watching), seat, stop))
}

pub(crate) async fn daemon_set(
    app: &Arc<App>,
    seat: OwnedSemaphorePermit,
    set: SetName,
    query: &Query,
    stop: CancellationToken,
) -> Result<Response<Body>, Failure> {
    let watching = Watching::new(app.watching.watches().await?);
    let stream = DaemonSetStream::new(watching, set, query.get("group"));
    Ok(sse::response(stream, seat, stop))
}

/// What a stream has of the watches.
struct Watching {
    watches: Arc<Watches>,
    changes: watch::Receiver<u64>,
    /// The connection that was sent, and whether the DaemonSet was gone.
    sent: Option<(Watched, bool)>,
}

impl Watching {
    fn new(watches: Arc<Watches>) -> Self {
        Self {
            changes: watches.live.changes(),
            watches,
            sent: None,
        }
    }

    fn read<R>(&mut self, read: impl FnOnce(&View) -> R) -> R {
        self.changes.mark_unchanged();
        self.watches.live.read(read)
    }

    async fn changed(&mut self) {
        if self.changes.changed().await.is_err() {
            // The watches have ended, and so does this stream when the dashboard stops.
            std::future::pending::<()>().await;
        }
    }

    /// Adds a status if it is another one than before.
    fn add_status(&mut self, connection: Watched, gone: bool, messages: &mut Messages) {
        // At first there is nothing to say but that the lists are being read.
        let begins = self.sent.is_none() && !connection.synced && connection.why.is_none();
        let now = Some((connection, gone));
        if begins || self.sent == now {
            return;
        }
        if let Some((connection, gone)) = &now {
            let refused = connection.refused.iter();
            let status = Connection {
                connected: connection.connected,
                why: connection.why.clone(),
                notes: refused
                    .map(|what| format!("you may not watch {what}"))
                    .collect(),
                gone: *gone,
                now: snapshot::now(),
            };
            messages.add("status", &status);
        }
        self.sent = now;
    }
}
