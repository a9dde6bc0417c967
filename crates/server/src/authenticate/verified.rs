//! Tokens whose signatures have been verified, remembered by their hash: a client sends the same token
//! with every request, and a signature costs more than everything else on the way. Only the signature is
//! remembered, not that those are still there whom the token speaks of.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest as _, Sha256};

/// How many are remembered. A token and its claims take about a kilobyte.
const REMEMBERED_MAX: usize = 4096;

/// What is remembered of a token.
pub(super) trait Ends {
    /// When it ends, in seconds.
    fn ends(&self) -> i64;
}

/// Tokens by the hash of their text.
pub(super) struct Verified<T>(Mutex<HashMap<[u8; 32], Arc<T>>>);

impl<T: Ends> Verified<T> {
    pub(super) fn new() -> Self {
        Self(Mutex::default())
    }

    /// What a token says: remembered, or read now and then remembered.
    pub(super) fn get_or<E>(
        &self,
        token: &str,
        now: i64,
        read: impl FnOnce() -> Result<T, E>,
    ) -> Result<Arc<T>, E> {
        let hash: [u8; 32] = Sha256::digest(token).into();
        let known = self.lock().get(&hash).cloned();
        if let Some(known) = known.filter(|known| now < known.ends()) {
            return Ok(known);
        }
        // Not under the lock: others' tokens need not wait for this one's signature.
        let said = Arc::new(read()?);
        let mut remembered = self.lock();
        if remembered.len() >= REMEMBERED_MAX {
            remembered.retain(|_, said| now < said.ends());
        }
        if remembered.len() >= REMEMBERED_MAX {
            remembered.clear();
        }
        remembered.insert(hash, Arc::clone(&said));
        Ok(said)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<[u8; 32], Arc<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Ends for i64 {
        fn ends(&self) -> i64 {
            *self
        }
    }

    #[test]
    fn a_token_is_read_once_until_it_ends() {
        let verified = Verified::new();
        let check = |token: &str, now: i64, is_read: bool| {
            let mut reads = 0;
            let read = || {
                reads += 1;
                Ok::<_, ()>(10)
            };
            verified.get_or(token, now, read).unwrap();
            assert_eq!(reads == 1, is_read, "{token} at {now}");
        };
        check("a", 0, true);
        check("a", 9, false);
        check("a", 10, true);
        check("b", 0, true);
        assert!(verified.get_or("c", 0, || Err::<i64, _>(())).is_err());
        assert_eq!(verified.lock().len(), 2);
    }

    #[test]
    fn memory_is_bounded() {
        let verified = Verified::new();
        for number in 0..REMEMBERED_MAX + 10 {
            let text = number.to_string();
            verified.get_or(&text, 0, || Ok::<_, ()>(10)).unwrap();
        }
        assert!(verified.lock().len() <= REMEMBERED_MAX);
    }
}
