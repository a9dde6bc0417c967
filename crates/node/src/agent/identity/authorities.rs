//! The certificate authorities of the cluster. The server publishes them in a config map, and may replace them: an agent
//! follows, over connections that the authorities before have verified.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kennel_client::write::{Call, Writer};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tokio::sync::watch;

use super::{IdentityError, certificate, unusable};

/// The config map, which every node may read.
const PATH: &str = "/api/v1/namespaces/kube-public/configmaps/kube-root-ca.crt";
/// How often the agent looks.
const INTERVAL: Duration = Duration::from_mins(5);

/// The authorities as PEM; the one that signs is first. Empty if there are none.
pub type Authorities = watch::Receiver<Arc<String>>;
/// Replaces the authorities.
pub type AuthoritiesSender = watch::Sender<Arc<String>>;

/// Authorities that never change.
pub fn fixed(pem: String) -> Authorities {
    watch::channel(Arc::new(pem)).1
}

/// Parses authorities.
pub fn parse(pem: &str) -> Result<Vec<CertificateDer<'static>>, IdentityError> {
    let all = CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<Vec<_>, _>>();
    all.map_err(unusable("the cluster's certificate authority"))
}

/// Waits until they change; forever if they never do.
pub async fn changed(authorities: &mut Authorities) {
    if authorities.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Follows the published authorities and stores them in `file`; never returns. `install` gets those that are new.
pub async fn follow(
    writer: Writer,
    file: &Path,
    current: AuthoritiesSender,
    mut install: impl FnMut(&str) -> Result<(), IdentityError> + Send,
) {
    loop {
        if let Some(new) = published(&writer).await
            && !are_same(&new, &current.borrow())
        {
            let installed = certificate::write(file, &new).and_then(|()| install(&new));
            match installed {
                Ok(()) => {
                    tracing::info!("the certificate authorities of the cluster have changed");
                    current.send_replace(Arc::new(new));
                }
                Err(error) => tracing::warn!("cannot use the new certificate authorities: {error}"),
            }
        }
        tokio::time::sleep(INTERVAL.mul_f64(0.9 + 0.2 * fastrand::f64())).await;
    }
}

/// Whether these are the same certificates, however they are written.
fn are_same(one: &str, other: &str) -> bool {
    parse(one).ok() == parse(other).ok()
}

/// None if they cannot be read, such as with another Kubernetes, or are no certificates.
async fn published(writer: &Writer) -> Option<String> {
    let answer = writer.send(&Call::get(PATH)).await;
    let answer = answer.inspect_err(|failure| {
        tracing::debug!("cannot read the certificate authorities of the cluster: {failure}");
    });
    let tree = answer.ok()?.tree().ok()?;
    let pem = tree["data"]["ca.crt"].as_str()?.to_owned();
    let parsed = parse(&pem).ok()?;
    (!parsed.is_empty()).then_some(pem)
}
