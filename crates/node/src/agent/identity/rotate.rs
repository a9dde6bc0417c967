//! Keeps certificates fresh: asks for the next one late in the life of the present one, with no restart.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use kennel_client::clock;

use super::{Desk, IdentityError, Pair, Wanted};

/// The longest sleep: clocks jump.
const NAP: Duration = Duration::from_mins(30);
/// How soon a request that failed is tried again; doubled each time.
const RETRY: Duration = Duration::from_secs(5);
const RETRY_MAX: Duration = Duration::from_mins(5);

/// Where certificates come from.
#[async_trait]
pub trait Certifier: Send + Sync + 'static {
    /// Gets one and keeps it in this file. Waits for as long as it takes.
    async fn obtain(&self, wanted: &Wanted, file: &Path) -> Result<Pair, IdentityError>;
}

#[async_trait]
impl Certifier for Desk {
    async fn obtain(&self, wanted: &Wanted, file: &Path) -> Result<Pair, IdentityError> {
        Self::obtain(self, wanted, file).await
    }
}

/// Replaces a certificate whenever it is time, for ever. With none at first, gets one at once. `take` is given
/// each new one.
pub async fn keep(
    certifier: &dyn Certifier,
    wanted: &Wanted,
    file: &Path,
    mut current: Option<Pair>,
    mut take: impl FnMut(&Pair) -> Result<(), IdentityError> + Send,
) {
    let mut retry = RETRY;
    loop {
        if let Some(pair) = &current {
            sleep_until(pair.renew_at(fastrand::f64())).await;
        }
        let got = certifier.obtain(wanted, file).await;
        match got.and_then(|pair| take(&pair).map(|()| pair)) {
            Ok(pair) => {
                let until = clock::rfc3339(pair.not_after);
                let what = wanted.purpose.word();
                tracing::info!("got a new {what} certificate, good until {until}");
                current = Some(pair);
                retry = RETRY;
            }
            Err(error) => {
                tracing::warn!("no new certificate: {error}");
                tokio::time::sleep(retry).await;
                retry = (retry * 2).min(RETRY_MAX);
            }
        }
    }
}

/// Sleeps until a time in seconds since the epoch, whatever happens to the clock.
async fn sleep_until(at: i64) {
    loop {
        let left = at.saturating_mul(1000) - clock::now_ms();
        let Ok(left @ 1..) = u64::try_from(left) else {
            return;
        };
        tokio::time::sleep(Duration::from_millis(left).min(NAP)).await;
    }
}
