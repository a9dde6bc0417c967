//! Rotates certificates: requests the next one late in the lifetime of the current one, without a restart.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use kennel_client::backoff::{Backoff, Policy};
use kennel_client::clock;
use kennel_types::Timestamp;

use super::authorities::{self, Authorities};
use super::{Certificate, CertificateRequest, IdentityError};

/// Check the wall clock at least this often: it may jump.
const MAX_SLEEP: Duration = Duration::from_mins(30);
/// Renewals because of a new authority are spread over this time.
const RENEWAL_SPREAD: Duration = Duration::from_secs(10);
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

/// Renews the certificate whenever it is due, or when another authority signs; never returns. Without a current one,
/// requests one at once. `install` gets each new one.
pub async fn run(
    certifier: &dyn Certifier,
    request: &CertificateRequest,
    file: &Path,
    mut current: Option<Certificate>,
    mut authorities: Option<Authorities>,
    mut install: impl FnMut(&Certificate) -> Result<(), IdentityError> + Send,
) {
    let mut retry = Backoff::new(RETRY);
    let mut is_new = false;
    loop {
        if let Some(certificate) = &current {
            tokio::select! {
                () = sleep_until(certificate.renew_at(fastrand::f64())) => {}
                () = other_authority(certificate, authorities.as_mut(), is_new) => {}
            }
        }
        let obtained = certifier.obtain(request, file).await;
        match obtained.and_then(|new| install(&new).map(|()| new)) {
            Ok(new) => {
                let expiry = Timestamp::from_secs(new.not_after);
                let purpose = request.purpose.as_str();
                tracing::info!("got a new {purpose} certificate, valid until {expiry}");
                current = Some(new);
                is_new = true;
                retry.reset();
            }
            Err(error) => {
                tracing::warn!("cannot renew the certificate: {error}");
                retry.sleep().await;
            }
        }
    }
}

/// Returns when another authority than that of the certificate signs, so that the certificate stays valid when its own
/// is retired; after a random delay, because all nodes notice it. A certificate that `is_new` has just been signed:
/// waits for the next change.
async fn other_authority(
    certificate: &Certificate,
    authorities: Option<&mut Authorities>,
    is_new: bool,
) {
    let Some(authorities) = authorities else {
        return std::future::pending().await;
    };
    if is_new {
        authorities::changed(authorities).await;
    }
    loop {
        let signs = authorities::parse(&authorities.borrow_and_update()).unwrap_or_default();
        let is_current =
            signs.is_empty() || certificate.is_signed_by(signs.get(..1).unwrap_or_default());
        if !is_current {
            tokio::time::sleep(RENEWAL_SPREAD.mul_f64(fastrand::f64())).await;
            return;
        }
        authorities::changed(authorities).await;
    }
}

/// Sleeps until a wall time in seconds since the epoch, even if the clock jumps.
async fn sleep_until(at: i64) {
    loop {
        let left = Timestamp::from_secs(at).saturating_since(clock::now());
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(MAX_SLEEP)).await;
    }
}
