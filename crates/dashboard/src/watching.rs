//! The watches of the cluster: begun by the first stream, shared by all, and ended when no page was open for a while.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kennel_inspect::Error;
use kennel_inspect::live::{Live, Scope};
use kube::Client;
use tokio::sync::Mutex;
use tokio_util::sync::{CancellationToken, DropGuard};

/// How long watches outlast the last stream: a page that is loaded again finds them running.
const IDLE_MAX: Duration = Duration::from_mins(1);

/// See the [module](self).
pub(crate) struct Watching {
    client: Client,
    present: Mutex<Option<Present>>,
}

struct Present {
    watches: Arc<Watches>,
    used: Instant,
}

/// Running watches, which end when this is dropped.
pub(crate) struct Watches {
    pub(crate) live: Live,
    _end: DropGuard,
}

impl Watching {
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            present: Mutex::new(None),
        }
    }

    /// Begins to watch, unless that has begun already. They last as long as somebody has them, and a little longer.
    pub(crate) async fn watches(&self) -> Result<Arc<Watches>, Error> {
        let mut present = self.present.lock().await;
        if let Some(present) = present.as_mut() {
            present.used = Instant::now();
            return Ok(Arc::clone(&present.watches));
        }
        let end = CancellationToken::new();
        let live = Live::start(self.client.clone(), Scope::All, end.clone()).await?;
        let watches = Arc::new(Watches {
            live,
            _end: end.drop_guard(),
        });
        *present = Some(Present {
            watches: Arc::clone(&watches),
            used: Instant::now(),
        });
        Ok(watches)
    }

    /// Ends watches that nobody uses; returns when all are to end.
    pub(crate) async fn end_when_idle(watching: &Self, stop: CancellationToken) {
        let mut tick = tokio::time::interval(IDLE_MAX / 4);
        while stop.run_until_cancelled(tick.tick()).await.is_some() {
            watching.sweep().await;
        }
        *watching.present.lock().await = None;
    }

    async fn sweep(&self) {
        let mut present = self.present.lock().await;
        let Some(found) = present.as_mut() else {
            return;
        };
        if Arc::strong_count(&found.watches) > 1 {
            found.used = Instant::now();
        } else if found.used.elapsed() >= IDLE_MAX {
            tracing::debug!("no page is open: the watches of the dashboard end");
            *present = None;
        }
    }
}
