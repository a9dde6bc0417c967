//! A value that is replaced while it is in use, such as a certificate.

use std::sync::Arc;

use tokio::sync::watch;

/// Clones share the value.
#[derive(Debug)]
pub struct Live<T>(Arc<watch::Sender<Arc<T>>>);

impl<T> Clone for Live<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Live<T> {
    pub fn new(value: T) -> Self {
        Self(Arc::new(watch::channel(Arc::new(value)).0))
    }

    pub fn get(&self) -> Arc<T> {
        Arc::clone(&self.0.borrow())
    }

    pub fn set(&self, value: T) {
        self.0.send_replace(Arc::new(value));
    }

    /// Receives the values that follow.
    pub fn subscribe(&self) -> watch::Receiver<Arc<T>> {
        self.0.subscribe()
    }
}
