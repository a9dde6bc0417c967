//! Caches the claims of tokens with verified signatures, by the hash of the token: clients send the same
//! token with every request, and verifying a signature costs more than the rest of a request. The caller
//! still checks that the objects in the claims exist.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest as _, Sha256};

/// An entry takes about a kilobyte.
const ENTRIES_MAX: usize = 4096;

pub(super) trait Expires {
    /// In Unix seconds.
    fn expires_at(&self) -> i64;
}

pub(super) struct TokenCache<T>(Mutex<HashMap<[u8; 32], Arc<T>>>);

impl<T: Expires> TokenCache<T> {
    pub(super) fn new() -> Self {
        Self(Mutex::default())
    }

    /// The cached claims, or those that `read` returns, which are cached then.
    pub(super) fn get_or_insert<E>(
        &self,
        token: &str,
        now: i64,
        read: impl FnOnce() -> Result<T, E>,
    ) -> Result<Arc<T>, E> {
        let hash: [u8; 32] = Sha256::digest(token).into();
        let cached = self.lock().get(&hash).cloned();
        if let Some(cached) = cached.filter(|cached| now < cached.expires_at()) {
            return Ok(cached);
        }
        // Verifies without the lock: other requests do not wait for this signature.
        let claims = Arc::new(read()?);
        let mut entries = self.lock();
        if entries.len() >= ENTRIES_MAX {
            entries.retain(|_, claims| now < claims.expires_at());
        }
        if entries.len() >= ENTRIES_MAX {
            entries.clear();
        }
        entries.insert(hash, Arc::clone(&claims));
        Ok(claims)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<[u8; 32], Arc<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Expires for i64 {
        fn expires_at(&self) -> i64 {
            *self
        }
    }

    #[test]
    fn a_token_is_read_once_until_it_expires() {
        let cache = TokenCache::new();
        let check = |token: &str, now: i64, is_read: bool| {
            let mut reads = 0;
            let read = || {
                reads += 1;
                Ok::<_, ()>(10)
            };
            cache.get_or_insert(token, now, read).unwrap();
            assert_eq!(reads == 1, is_read, "{token} at {now}");
        };
        check("a", 0, true);
        check("a", 9, false);
        check("a", 10, true);
        check("b", 0, true);
        assert!(cache.get_or_insert("c", 0, || Err::<i64, _>(())).is_err());
        assert_eq!(cache.lock().len(), 2);
    }

    #[test]
    fn memory_is_bounded() {
        let cache = TokenCache::new();
        for number in 0..ENTRIES_MAX + 10 {
            let text = number.to_string();
            cache.get_or_insert(&text, 0, || Ok::<_, ()>(10)).unwrap();
        }
        assert!(cache.lock().len() <= ENTRIES_MAX);
    }
}
