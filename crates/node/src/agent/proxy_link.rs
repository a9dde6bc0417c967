//! The state that a node and the service proxy in the same process share.

use std::sync::Arc;

use kennel_client::metrics::Observed;
use serde_json::Value;
use tokio::sync::watch;

/// The node's end. By default there is no proxy.
#[derive(Clone)]
pub struct ProxyLink {
    /// The node's own object, for the proxy.
    node: watch::Sender<Arc<Value>>,
    /// Why services are not routed: then the node is not ready.
    pub problem: watch::Receiver<Option<String>>,
    /// For `/metrics` of the kubelet API.
    pub metrics: Option<Arc<dyn Observed>>,
}

impl ProxyLink {
    pub fn new(problem: watch::Receiver<Option<String>>, metrics: Arc<dyn Observed>) -> Self {
        Self {
            problem,
            metrics: Some(metrics),
            ..Self::default()
        }
    }

    /// The node's own object: the one to register at first, then the stored one; null before.
    pub fn node(&self) -> watch::Receiver<Arc<Value>> {
        self.node.subscribe()
    }

    /// Where the node puts its own object, with this one in it.
    pub(super) fn node_sender(&self, object: Value) -> watch::Sender<Arc<Value>> {
        self.node.send_replace(Arc::new(object));
        self.node.clone()
    }
}

impl Default for ProxyLink {
    fn default() -> Self {
        Self {
            node: watch::Sender::new(Arc::default()),
            problem: watch::channel(None).1,
            metrics: None,
        }
    }
}
