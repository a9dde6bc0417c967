//! The certificate and key of a dashboard that other machines reach. Both files are read again while it runs.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kennel_client::expiry::{self, Lifetime};
use kennel_types::Timestamp;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::hosts::Hosts;

/// How often to look whether the files have changed.
const RELOAD_INTERVAL: Duration = Duration::from_secs(10);

/// Files in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, then those of its issuers.
    pub certificate: PathBuf,
    pub key: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot read {}", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} has no certificate in PEM", path.display())]
    NoCertificate { path: PathBuf },
    #[error("{} cannot be used", path.display())]
    Pem {
        path: PathBuf,
        #[source]
        source: pem::Error,
    },
    #[error("the certificate and the key cannot be used")]
    Pair(#[source] rustls::Error),
}

/// A certificate and its key, in use.
struct Pair {
    acceptor: TlsAcceptor,
    /// Its own, without those of its issuers.
    certificate: CertificateDer<'static>,
    files: Contents,
}

/// Of both files.
#[derive(PartialEq, Eq)]
struct Contents {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

/// What new connections use.
pub(crate) struct Live {
    files: TlsFiles,
    pair: watch::Sender<Pair>,
}

impl Live {
    pub(crate) fn open(files: TlsFiles) -> Result<Self, TlsError> {
        let pair = watch::Sender::new(load(&files, contents(&files)?)?);
        Ok(Self { files, pair })
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        self.pair.borrow().acceptor.clone()
    }

    /// The names of the certificate.
    pub(crate) fn hosts(&self, address: SocketAddr) -> Hosts {
        Hosts::of_certificate(address, &self.pair.borrow().certificate)
    }

    /// Puts changed files to use, and calls `replaced` then. Never returns.
    pub(crate) async fn follow(&self, replaced: impl Fn()) {
        let mut refused = String::new();
        loop {
            tokio::time::sleep(RELOAD_INTERVAL).await;
            match self.reload() {
                Ok(false) => refused.clear(),
                Ok(true) => {
                    refused.clear();
                    replaced();
                    tracing::info!("new connections use the new TLS certificate");
                }
                Err(error) => {
                    let cause = std::error::Error::source(&error).map(ToString::to_string);
                    let said = format!("{error}: {}", cause.unwrap_or_default());
                    if said != refused {
                        tracing::warn!("the TLS certificate in use stays: {said}");
                        refused = said;
                    }
                }
            }
        }
    }

    /// Returns whether the files have changed. If they cannot be used, as between the replacements of the two, the pair in use
    /// stays.
    fn reload(&self) -> Result<bool, TlsError> {
        let contents = contents(&self.files)?;
        if contents == self.pair.borrow().files {
            return Ok(false);
        }
        self.pair.send_replace(load(&self.files, contents)?);
        Ok(true)
    }

    /// The warning of its end, if that is soon.
    pub(crate) fn warnings(&self, now: Timestamp) -> Vec<String> {
        let lifetime = lifetime(&self.pair.borrow().certificate);
        let warning = lifetime.and_then(|lifetime| {
            let file = self.files.certificate.display();
            let remedy = format!(
                "write a new one and its key; the dashboard reads {file} again while it runs"
            );
            let what = "the TLS certificate of the dashboard";
            expiry::warning_of_others(what, lifetime, now, &remedy)
        });
        warning.into_iter().collect()
    }
}

fn lifetime(certificate: &[u8]) -> Option<Lifetime> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let validity = certificate.validity();
    let at = Timestamp::from_secs;
    Some((
        at(validity.not_before.timestamp()),
        at(validity.not_after.timestamp()),
    ))
}

fn contents(files: &TlsFiles) -> Result<Contents, TlsError> {
    Ok(Contents {
        certificate: read(&files.certificate)?,
        key: read(&files.key)?,
    })
}

fn load(files: &TlsFiles, contents: Contents) -> Result<Pair, TlsError> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&contents.certificate).collect();
    let chain = chain.map_err(unusable(&files.certificate))?;
    let Some(certificate) = chain.first().cloned() else {
        let path = files.certificate.clone();
        return Err(TlsError::NoCertificate { path });
    };
    let key = PrivateKeyDer::from_pem_slice(&contents.key);
    let key = key.map_err(unusable(&files.key))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Pair)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(TlsError::Pair)?;
    Ok(Pair {
        acceptor: TlsAcceptor::from(Arc::new(config)),
        certificate,
        files: contents,
    })
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|source| {
        let path = path.to_owned();
        TlsError::Read { path, source }
    })
}

fn unusable(path: &Path) -> impl FnOnce(pem::Error) -> TlsError {
    let path = path.to_owned();
    |source| TlsError::Pem { path, source }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use rcgen::{CertificateParams, CertifiedKey, KeyPair, generate_simple_self_signed};

    use super::*;

    fn pair(name: &str) -> CertifiedKey<KeyPair> {
        generate_simple_self_signed([name.to_owned()]).unwrap()
    }

    #[test]
    fn changed_files_are_used_once_both_fit() {
        let dir = tempfile::tempdir().unwrap();
        let [certificate, key] = ["tls.crt", "tls.key"].map(|name| dir.path().join(name));
        let address = "0.0.0.0:443".parse().unwrap();
        let (old, new) = (pair("old.example"), pair("new.example"));
        std::fs::write(&certificate, old.cert.pem()).unwrap();
        std::fs::write(&key, old.signing_key.serialize_pem()).unwrap();
        let live = Live::open(TlsFiles {
            certificate: certificate.clone(),
            key: key.clone(),
        })
        .unwrap();
        assert!(!live.reload().unwrap());
        std::fs::write(&certificate, new.cert.pem()).unwrap();
        assert!(live.reload().is_err(), "the key is of the old one");
        assert!(live.hosts(address).is_own("old.example"));
        std::fs::remove_file(&key).unwrap();
        assert!(live.reload().is_err());
        std::fs::write(&key, new.signing_key.serialize_pem()).unwrap();
        assert!(live.reload().unwrap());
        assert!(live.hosts(address).is_own("new.example"));
        assert!(!live.hosts(address).is_own("old.example"));
    }

    #[test]
    fn the_warnings_of_90_days_begin_30_days_before_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let [certificate, key] = ["tls.crt", "tls.key"].map(|name| dir.path().join(name));
        let begin = 1_800_000_000;
        let at = |days: u64| begin + days * 86_400;
        let time = |days: u64| (UNIX_EPOCH + Duration::from_secs(at(days))).into();
        let pair = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["a.example".to_owned()]).unwrap();
        (params.not_before, params.not_after) = (time(0), time(90));
        std::fs::write(&certificate, params.self_signed(&pair).unwrap().pem()).unwrap();
        std::fs::write(&key, pair.serialize_pem()).unwrap();
        let live = Live::open(TlsFiles { certificate, key }).unwrap();
        let warnings = |days| {
            let now = i64::try_from(at(days)).unwrap();
            live.warnings(Timestamp::from_secs(now)).len()
        };
        assert_eq!((warnings(60), warnings(61)), (0, 1));
    }
}
