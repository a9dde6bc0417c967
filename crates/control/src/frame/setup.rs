//! What a process gives each controller that it runs.

use std::sync::Arc;

use kennel_client::events::Recorder;
use kennel_client::fence::Fence;
use kennel_client::write::Writer;
use kube::Client;
use tokio_util::sync::CancellationToken;

use super::Metrics;

/// See the [module](self). Controllers of one process share the fence of one election, and the metrics.
#[derive(Clone)]
pub struct Setup {
    /// Open while this process may write. Until then a controller only watches.
    pub fence: Fence,
    pub metrics: Arc<Metrics>,
    /// Ends the controller.
    pub stop: CancellationToken,
}

impl Setup {
    pub fn new(fence: Fence, stop: CancellationToken) -> Self {
        Self {
            fence,
            metrics: Arc::default(),
            stop,
        }
    }

    /// For a process that is certainly alone, such as a test's.
    pub fn unfenced(stop: CancellationToken) -> Self {
        Self::new(Fence::open(), stop)
    }

    /// The same for another run of a controller, which `stop` ends.
    #[must_use]
    pub fn with_stop(&self, stop: CancellationToken) -> Self {
        Self {
            stop,
            ..self.clone()
        }
    }

    /// Writes as this client while the fence is open.
    pub fn writer(&self, client: Client) -> Writer {
        Writer::new(client, self.fence.clone())
    }

    /// A [`writer`](Self::writer), a recorder of events of `component`, and the future that writes these, for
    /// [`run_with`](super::run_with).
    pub fn recording_writer(
        &self,
        client: Client,
        component: &'static str,
    ) -> (Writer, Recorder, impl Future<Output = ()> + Send + use<>) {
        let writer = self.writer(client);
        let (recorder, recording) = Recorder::new(writer.clone(), component, self.stop.clone());
        (writer, recorder, recording)
    }
}
