//! Answers that hold for a while, and not too many of them.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How many answers are kept. Those who ask a node are few: the API server, and who reads metrics.
const ANSWERS_MAX: usize = 256;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Remembered<K, V>(Mutex<BTreeMap<K, (Instant, V)>>);

impl<K, V> Default for Remembered<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Ord, V: Clone> Remembered<K, V> {
    /// An answer that still holds.
    pub(super) fn get(&self, key: &K) -> Option<V> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (until, value) = all.get(key)?;
        (*until > Instant::now()).then(|| value.clone())
    }

    /// Keeps an answer for so long.
    pub(super) fn set(&self, key: K, value: V, holds: Duration) {
        let now = Instant::now();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= ANSWERS_MAX {
            all.retain(|_, (until, _)| *until > now);
        }
        // To forget all is better than to search: it happens to nobody who asks in earnest.
        if all.len() >= ANSWERS_MAX {
            all.clear();
        }
        all.insert(key, (now + holds, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn answers_hold_for_their_time() {
        let memory = Remembered::default();
        memory.set("a", 1, Duration::from_secs(10));
        tokio::time::advance(Duration::from_secs(9)).await;
        assert_eq!(memory.get(&"a"), Some(1));
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(memory.get(&"a"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn they_never_grow_beyond_their_bound() {
        let memory = Remembered::default();
        for key in 0..ANSWERS_MAX * 3 {
            memory.set(key, (), Duration::from_secs(10));
            assert_eq!(memory.get(&key), Some(()));
        }
        assert!(memory.0.lock().unwrap().len() <= ANSWERS_MAX);
    }
}
