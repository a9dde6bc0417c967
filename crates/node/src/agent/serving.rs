//! The certificate of the node's own server: uses the stored one if it is still valid, else gets a new one, and
//! rotates it.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kennel_client::clock;

use super::addresses::Addresses;
use super::identity::request::Purpose;
use super::identity::rotate::{self, Certifier};
use super::identity::{
    Authorities, Certificate, CertificateRequest, CertificateResolver, Expirations, IdentityError,
    authorities, join,
};

/// How long the approval of a certificate for the node's addresses may take before the node asks for one without.
const CONFIRMATION_DELAY: Duration = Duration::from_secs(10);

pub(super) struct ServingCertificate {
    /// The node's name.
    pub(super) node: String,
    pub(super) addresses: Addresses,
    pub(super) file: PathBuf,
    /// One of these must have signed it, if there are any.
    pub(super) authorities: Authorities,
    /// Whether they sign serving certificates. Those of another Kubernetes may not.
    pub(super) authorities_sign: bool,
    pub(super) expirations: Arc<Expirations>,
    pub(super) certifier: Arc<dyn Certifier>,
    /// The API server's URL, if it runs in another process.
    pub(super) server: Option<String>,
    pub(super) resolver: Arc<CertificateResolver>,
}

impl ServingCertificate {
    /// Follows the node's addresses. Never returns.
    pub(super) async fn run(self) {
        let mut changes = self.addresses.subscribe();
        loop {
            tokio::select! {
                () = self.serve() => {}
                // The node's name stays certified until the new certificate is there.
                Ok(()) = changes.changed() => {}
            }
        }
    }

    /// Never returns.
    async fn serve(&self) {
        let addresses = self.certifiable_addresses().await;
        let current = self.use_stored(&addresses);
        let request = CertificateRequest::serving(&self.node, addresses);
        let authorities = self.authorities_sign.then(|| self.authorities.clone());
        let install = |certificate: &Certificate| self.set(certificate);
        let certifier = &*self.certifier;
        let rotation = rotate::run(
            certifier,
            &request,
            &self.file,
            current,
            authorities,
            install,
        );
        tokio::join!(rotation, self.serve_without_addresses(&request));
    }

    /// An address may need an administrator's confirmation, such as behind NAT. Meanwhile the node serves with a
    /// certificate for its name, by which the API server addresses it.
    async fn serve_without_addresses(&self, wanted: &CertificateRequest) {
        tokio::time::sleep(CONFIRMATION_DELAY).await;
        if self.resolver.is_set() || wanted.addresses.is_empty() {
            return;
        }
        let request = CertificateRequest::serving(&self.node, Vec::new());
        let obtained = self.certifier.obtain(&request, &self.file);
        match obtained.await {
            // The other one may have come meanwhile.
            Ok(_) if self.resolver.is_set() => {}
            Ok(certificate) => match self.set(&certificate) {
                Ok(()) => tracing::warn!(
                    "serving with a certificate for the node's name alone, until that for its addresses is approved"
                ),
                Err(error) => tracing::warn!("{error}"),
            },
            Err(error) => tracing::warn!("cannot get a certificate for the node's name: {error}"),
        }
    }

    fn set(&self, certificate: &Certificate) -> Result<(), IdentityError> {
        self.resolver.set(certificate)?;
        self.expirations.set(Purpose::Serving, certificate);
        Ok(())
    }

    /// The approver grants no certificate for the API server's addresses, which the node shares if both run on one
    /// machine, and none for an address that the request does not come from, such as any other address of a node that
    /// reaches the server at its loopback address. The server does not need them: it addresses nodes by name.
    async fn certifiable_addresses(&self) -> Vec<IpAddr> {
        let Some(server) = &self.server else {
            return self.addresses.current();
        };
        let reserved = join::server_addresses(server).await;
        let is_local = join::api_address(server).is_some_and(|api| is_loopback(&api.host));
        let own = self.addresses.current().into_iter();
        own.filter(|one| one.is_loopback() || !is_local && !reserved.contains(one))
            .collect()
    }

    /// The stored certificate, if it is still valid.
    fn use_stored(&self, addresses: &[IpAddr]) -> Option<Certificate> {
        let stored = Certificate::read(&self.file);
        let stored = stored.inspect_err(|error| tracing::warn!("{error}")).ok()?;
        let now = clock::now().as_secs();
        let authorities = authorities::parse(&self.authorities.borrow()).unwrap_or_default();
        let is_valid = |certificate: &Certificate| {
            let trusted = authorities.is_empty() || certificate.is_signed_by(&authorities);
            trusted && certificate.covers(&self.node, addresses, now)
        };
        let valid = stored.filter(is_valid)?;
        let set = self.set(&valid);
        let set = set.inspect_err(|error| tracing::warn!("{error}"));
        set.ok().map(|()| valid)
    }
}

fn is_loopback(host: &str) -> bool {
    let address = host.parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}
