//! TLS to etcd from files, which are read again for every connection, so that renewed certificates need no restart.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

use super::error::EtcdError;
use super::options::EtcdTls;

/// See the [module](self).
pub(super) struct Tls {
    files: EtcdTls,
    loaded: Mutex<Loaded>,
}

struct Loaded {
    contents: Contents,
    connector: TlsConnector,
    /// The warning of files that cannot be used, so that it is logged once.
    refused: String,
}

/// What the files have.
#[derive(PartialEq, Eq)]
struct Contents {
    authorities: Vec<u8>,
    /// The certificate and its key.
    client: Option<(Vec<u8>, Vec<u8>)>,
}

impl Tls {
    pub(super) fn load(files: &EtcdTls) -> Result<Self, EtcdError> {
        let contents = read(files)?;
        let connector = connector(files, &contents)?;
        Ok(Self {
            files: files.clone(),
            loaded: Mutex::new(Loaded {
                contents,
                connector,
                refused: String::new(),
            }),
        })
    }

    /// For the next connection. If the files cannot be used, as between the replacements of a certificate and its key, the earlier
    /// ones stay in use.
    pub(super) fn connector(&self) -> TlsConnector {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        match self.changed(&loaded.contents) {
            Ok(None) => loaded.refused.clear(),
            Ok(Some((contents, connector))) => {
                tracing::info!("new connections to etcd use the new TLS files");
                *loaded = Loaded {
                    contents,
                    connector,
                    refused: String::new(),
                };
            }
            Err(error) => {
                let said = error.to_string();
                if said != loaded.refused {
                    tracing::warn!("the earlier TLS files stay in use: {said}");
                    loaded.refused = said;
                }
            }
        }
        loaded.connector.clone()
    }

    fn changed(&self, before: &Contents) -> Result<Option<(Contents, TlsConnector)>, EtcdError> {
        let contents = read(&self.files)?;
        if contents == *before {
            return Ok(None);
        }
        let connector = connector(&self.files, &contents)?;
        Ok(Some((contents, connector)))
    }
}

fn failed(path: &Path, reason: &dyn std::fmt::Display) -> EtcdError {
    EtcdError::TlsFile {
        path: path.to_owned(),
        reason: reason.to_string(),
    }
}

fn read(files: &EtcdTls) -> Result<Contents, EtcdError> {
    let read = |path: &Path| std::fs::read(path).map_err(|error| failed(path, &error));
    let client = files.client.as_ref();
    let client = client.map(|(certificate, key)| Ok((read(certificate)?, read(key)?)));
    Ok(Contents {
        authorities: read(&files.ca_file)?,
        client: client.transpose()?,
    })
}

fn certificates(path: &Path, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, EtcdError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(found) if found.is_empty() => Err(failed(path, &"it has no certificate")),
        other => other.map_err(|error| failed(path, &error)),
    }
}

fn connector(files: &EtcdTls, contents: &Contents) -> Result<TlsConnector, EtcdError> {
    let ca_file = &files.ca_file;
    let mut roots = RootCertStore::empty();
    for certificate in certificates(ca_file, &contents.authorities)? {
        let added = roots.add(certificate);
        added.map_err(|error| failed(ca_file, &error))?;
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| failed(ca_file, &error))?;
    let config = config.with_root_certificates(roots);
    let mut config = match files.client.as_ref().zip(contents.client.as_ref()) {
        None => config.with_no_client_auth(),
        Some(((certificate, key), (chain, secret))) => {
            let chain = certificates(certificate, chain)?;
            let secret = PrivateKeyDer::from_pem_slice(secret);
            let secret = secret.map_err(|error| failed(key, &error))?;
            let config = config.with_client_auth_cert(chain, secret);
            config.map_err(|error| failed(key, &error))?
        }
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair};

    use super::*;

    /// A certificate of its own authority, and its key.
    fn pair() -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["etcd".to_owned()]).unwrap();
        let certificate = params.self_signed(&key).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    #[test]
    fn changed_files_are_used_once_they_belong_together() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str| dir.path().join(name);
        let (first, second) = (pair(), pair());
        std::fs::write(file("ca"), &first.0).unwrap();
        std::fs::write(file("cert"), &first.0).unwrap();
        std::fs::write(file("key"), &first.1).unwrap();
        let tls = Tls::load(&EtcdTls {
            ca_file: file("ca"),
            client: Some((file("cert"), file("key"))),
        })
        .unwrap();
        let config = || Arc::as_ptr(tls.connector().config());
        let before = config();
        assert_eq!(config(), before);
        // Without its key.
        std::fs::write(file("cert"), &second.0).unwrap();
        assert_eq!(config(), before);
        std::fs::remove_file(file("key")).unwrap();
        assert_eq!(config(), before);
        std::fs::write(file("key"), &second.1).unwrap();
        let after = tls.connector();
        assert_ne!(Arc::as_ptr(after.config()), before);
        std::fs::write(file("ca"), "nothing").unwrap();
        assert_eq!(config(), Arc::as_ptr(after.config()));
    }
}
