//! Rotates certificates: requests the next one late in the lifetime of the current one, without a restart.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use kennel_client::backoff::{Backoff, Policy};
use kennel_client::clock;

use super::{Certificate, CertificateRequest, IdentityError};

/// Check the wall clock at least this often: it may jump.
const MAX_SLEEP: Duration = Duration::from_mins(30);
/// Before a failed request is tried again.
const RETRY: Policy = Policy::exponential(Duration::from_secs(5), Duration::from_mins(5));

/// Issues certificates.
#[async_trait]
pub trait Certifier: Send + Sync + 'static {
    /// Stores the certificate in `file`. Waits without a timeout.
    async fn obtain(
        &self,
        request: &CertificateRequest,
        file: &Path,
    ) -> Result<Certificate, IdentityError>;
}

/// Renews the certificate whenever it is due; never returns. Without a current one, requests one at once. `install`
/// gets each new one.
pub async fn run(
    certifier: &dyn Certifier,
    request: &CertificateRequest,
    file: &Path,
    mut current: Option<Certificate>,
    mut install: impl FnMut(&Certificate) -> Result<(), IdentityError> + Send,
) {
    let mut retry = Backoff::new(RETRY);
    loop {
        if let Some(certificate) = &current {
            sleep_until(certificate.renew_at(fastrand::f64())).await;
        }
        let obtained = certifier.obtain(request, file).await;
        match obtained.and_then(|new| install(&new).map(|()| new)) {
            Ok(new) => {
                let expiry = clock::rfc3339(new.not_after);
                let purpose = request.purpose.as_str();
                tracing::info!("got a new {purpose} certificate, valid until {expiry}");
                current = Some(new);
                retry.reset();
            }
            Err(error) => {
                tracing::warn!("cannot renew the certificate: {error}");
                retry.sleep().await;
            }
        }
    }
}

/// Sleeps until a wall time in seconds since the epoch, even if the clock jumps.
async fn sleep_until(at: i64) {
    loop {
        let left = at.saturating_mul(1000) - clock::now_ms();
        let Ok(left @ 1..) = u64::try_from(left) else {
            return;
        };
        tokio::time::sleep(Duration::from_millis(left).min(MAX_SLEEP)).await;
    }
}
