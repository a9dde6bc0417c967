//! A bounded cache whose entries expire.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use tokio::time::Instant;

use crate::sync::lock;

/// A node has few callers: the API server, and whoever scrapes metrics.
const ENTRIES_MAX: usize = 256;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct ExpiringCache<K, V>(Mutex<BTreeMap<K, (Instant, V)>>);

impl<K, V> Default for ExpiringCache<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Ord, V: Clone> ExpiringCache<K, V> {
    /// The value, unless it has expired.
    pub(super) fn get(&self, key: &K) -> Option<V> {
        let entries = lock(&self.0);
        let (expires, value) = entries.get(key)?;
        (*expires > Instant::now()).then(|| value.clone())
    }

    pub(super) fn insert(&self, key: K, value: V, ttl: Duration) {
        let now = Instant::now();
        let mut entries = lock(&self.0);
        if entries.len() >= ENTRIES_MAX {
            entries.retain(|_, (expires, _)| *expires > now);
        }
        // Clearing is simpler than evicting one entry, and only floods of distinct callers cause it.
        if entries.len() >= ENTRIES_MAX {
            entries.clear();
        }
        entries.insert(key, (now + ttl, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn entries_expire() {
        let cache = ExpiringCache::default();
        cache.insert("a", 1, Duration::from_secs(10));
        tokio::time::advance(Duration::from_secs(9)).await;
        assert_eq!(cache.get(&"a"), Some(1));
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(cache.get(&"a"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn the_cache_never_grows_beyond_its_bound() {
        let cache = ExpiringCache::default();
        for key in 0..ENTRIES_MAX * 3 {
            cache.insert(key, (), Duration::from_secs(10));
            assert_eq!(cache.get(&key), Some(()));
        }
        assert!(cache.0.lock().unwrap().len() <= ENTRIES_MAX);
    }
}
