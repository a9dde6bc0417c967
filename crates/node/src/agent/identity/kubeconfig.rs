//! The client certificate of a kubeconfig. Nobody renews it, and a program that runs goes on with the one that it has read.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kennel_types::Timestamp;
use kube::config::AuthInfo;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::expiration::Lifetime;

/// What to do before it ends.
pub const REMEDY: &str =
    "nobody renews it: write a kubeconfig with a new one, and restart this program";

/// When it begins and ends, if the user of the kubeconfig has one that can be read.
pub fn client_lifetime(user: &AuthInfo) -> Option<Lifetime> {
    let pem = match (&user.client_certificate_data, &user.client_certificate) {
        (Some(data), _) => STANDARD.decode(data).ok()?,
        (None, Some(file)) => std::fs::read(file).ok()?,
        (None, None) => return None,
    };
    let der = CertificateDer::from_pem_slice(&pem).ok()?;
    let (_, certificate) = X509Certificate::from_der(&der).ok()?;
    let validity = certificate.validity();
    let at = |seconds| Timestamp::from_secs(seconds);
    Some((
        at(validity.not_before.timestamp()),
        at(validity.not_after.timestamp()),
    ))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    #[test]
    fn the_lifetime_is_that_of_the_certificate_in_the_file_or_beside_it() {
        let mut params = CertificateParams::default();
        params.not_before = date_time_ymd(2026, 1, 1);
        params.not_after = date_time_ymd(2027, 1, 1);
        let pem = params
            .self_signed(&KeyPair::generate().unwrap())
            .unwrap()
            .pem();
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("client.crt");
        std::fs::write(&file, &pem).unwrap();
        let expected = ["2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"].map(Timestamp::parse);
        let expected = expected[0].zip(expected[1]);
        let embedded = AuthInfo {
            client_certificate_data: Some(STANDARD.encode(&pem)),
            ..AuthInfo::default()
        };
        assert_eq!(client_lifetime(&embedded), expected);
        let beside = AuthInfo {
            client_certificate: Some(file.display().to_string()),
            ..AuthInfo::default()
        };
        assert_eq!(client_lifetime(&beside), expected);
        assert_eq!(client_lifetime(&AuthInfo::default()), None, "a token");
    }
}
