//! TLS of the listener: the server's certificate, and the verification of client certificates.
//!
//! The handshake checks only that the client has the key of its certificate. [`Tls::verify`] verifies the
//! certificate afterwards, so that an invalid one gets an HTTP answer instead of a broken connection, and
//! does not prevent authentication by a valid token.

use std::sync::Arc;

use data_encoding::HEXLOWER;
use kennel_core::certificates::revocation;
use kennel_types::Timestamp;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    DigitallySignedStruct, DistinguishedName, RootCertStore, ServerConfig, SignatureScheme,
};
use sha2::{Digest as _, Sha256};
use x509_parser::asn1_rs::{Oid, oid};
use x509_parser::extensions::ParsedExtension;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::live::Live;
use crate::pki::inspect::{CertificateInfo, split};
use crate::pki::{Clock, Pki};
use crate::request::{CREDENTIAL_ID, ClientCertificate, ConnectionIdentity, User};

/// The subject attribute that Kubernetes defines for a user's uid.
const UID: Oid<'_> = oid!(1.3.6.1.4.1.57683.2);

/// Why TLS could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A certificate or key could not be read.
    #[error("a certificate or key in the data directory cannot be read")]
    Pem(#[from] rustls::pki_types::pem::Error),
    /// The library refused them.
    #[error("TLS rejected the certificates in the data directory")]
    Tls(#[from] rustls::Error),
    /// The library refused the CA.
    #[error("TLS rejected the certificate authority in the data directory")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
}

/// The server's side of TLS. Its certificates can be replaced.
#[derive(Clone)]
pub(crate) struct Tls {
    current: Live<Current>,
    clock: Clock,
}

struct Current {
    config: Arc<ServerConfig>,
    clients: Arc<dyn ClientCertVerifier>,
    /// The ids of the authorities' keys.
    authorities: Vec<Vec<u8>>,
}

/// The authorities that clients and servers of this cluster trust.
pub(crate) fn roots(pki: &Pki) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(&pki.authority.bundle())? {
        roots.add(certificate)?;
    }
    Ok(roots)
}

/// All certificates of a PEM text.
pub(crate) fn certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let all = CertificateDer::pem_slice_iter(pem.as_bytes());
    Ok(all.collect::<Result<_, _>>()?)
}

impl Current {
    /// Client certificates are optional.
    fn new(pki: &Pki) -> Result<Self, TlsError> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let roots = roots(pki)?;
        let clients =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
                .allow_unauthenticated()
                .build()?;
        // The chain includes the cross certificates, for clients that trust only an earlier CA, and the CAs, so
        // that a joining node can check its CA by its hash.
        let authority = &pki.authority;
        let chain = [
            pki.server_cert_pem.clone(),
            authority.cross.concat(),
            authority.bundle(),
        ];
        let chain = certificates(&chain.concat())?;
        let key = PrivateKeyDer::from_pem_slice(pki.server_key_pem.as_bytes())?;
        let possession = Arc::new(ProofOfPossession(Arc::clone(&clients)));
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(possession)
            .with_single_cert(chain, key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self {
            config: Arc::new(config),
            clients,
            authorities: split(&authority.bundle())
                .iter()
                .filter_map(|pem| CertificateInfo::read(pem))
                .map(|info| info.subject_key)
                .collect(),
        })
    }
}

impl Tls {
    pub(crate) fn new(pki: &Pki, clock: Clock) -> Result<Self, TlsError> {
        Ok(Self {
            current: Live::new(Current::new(pki)?),
            clock,
        })
    }

    /// New connections use these certificates.
    pub(crate) fn replace(&self, pki: &Pki) -> Result<(), TlsError> {
        self.current.set(Current::new(pki)?);
        Ok(())
    }

    /// The configuration of a new connection.
    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.current.get().config)
    }

    /// Whether the authority of a certificate that was verified earlier is still trusted.
    pub(crate) fn trusts(&self, certificate: &ClientCertificate) -> bool {
        let key = &certificate.issuer_key;
        key.is_empty() || self.current.get().authorities.contains(key)
    }

    /// Verifies the certificates of a handshake.
    pub(crate) fn verify(&self, shown: Option<&[CertificateDer<'_>]>) -> ConnectionIdentity {
        let Some([certificate, others @ ..]) = shown else {
            return ConnectionIdentity::Anonymous;
        };
        let now = self.clock.now().saturating_since(Timestamp::EPOCH);
        let now = UnixTime::since_unix_epoch(now);
        let current = self.current.get();
        match current.clients.verify_client_cert(certificate, others, now) {
            Ok(_) => user_of(certificate),
            Err(error) => {
                tracing::debug!(%error, "a client certificate is not valid");
                ConnectionIdentity::InvalidCertificate
            }
        }
    }
}

/// The user that a verified client certificate names by common name and organisations. A certificate
/// without a common name is ignored.
fn user_of(certificate: &CertificateDer<'_>) -> ConnectionIdentity {
    let Ok((_, parsed)) = X509Certificate::from_der(certificate) else {
        return ConnectionIdentity::InvalidCertificate;
    };
    let subject = parsed.subject();
    let names = subject.iter_common_name().filter_map(|n| n.as_str().ok());
    let Some(name) = names.last().filter(|name| !name.is_empty()) else {
        return ConnectionIdentity::Anonymous;
    };
    let organisations = subject.iter_organization();
    let groups = organisations.filter_map(|o| o.as_str().ok());
    let groups = groups.map(str::to_owned).collect();
    let mut user = User::authenticated(name, groups);
    match uid(&parsed) {
        Ok(uid) => user.uid = uid,
        Err(Ambiguous) => return ConnectionIdentity::InvalidCertificate,
    }
    let fingerprint = HEXLOWER.encode(&Sha256::digest(certificate));
    let id = format!("X509SHA256={fingerprint}");
    user.extra.insert(CREDENTIAL_ID.to_owned(), vec![id]);
    let validity = parsed.validity();
    let not_before = Timestamp::from_secs(validity.not_before.timestamp());
    ConnectionIdentity::Certificate(Arc::new(ClientCertificate {
        user,
        expires: Timestamp::from_secs(validity.not_after.timestamp()),
        issued: revocation::issued_at(not_before),
        issuer_key: issuer_key(&parsed),
    }))
}

/// The id of the key that signed a certificate; empty if it does not tell.
fn issuer_key(certificate: &X509Certificate<'_>) -> Vec<u8> {
    let mut ids = certificate.extensions().iter().filter_map(|extension| {
        match extension.parsed_extension() {
            ParsedExtension::AuthorityKeyIdentifier(id) => id.key_identifier.as_ref(),
            _ => None,
        }
    });
    ids.next().map(|id| id.0.to_vec()).unwrap_or_default()
}

/// The subject has several uids, or one that is not text.
struct Ambiguous;

/// The uid in a certificate's subject; empty where there is none.
fn uid(certificate: &X509Certificate<'_>) -> Result<String, Ambiguous> {
    let mut named = certificate.subject().iter_by_oid(&UID);
    match (named.next(), named.next()) {
        (None, _) => Ok(String::new()),
        (Some(uid), None) => {
            let uid = uid.as_str().ok().filter(|uid| !uid.is_empty());
            uid.map(str::to_owned).ok_or(Ambiguous)
        }
        _ => Err(Ambiguous),
    }
}

/// Checks only that a client has the key of its certificate.
#[derive(Debug)]
struct ProofOfPossession(Arc<dyn ClientCertVerifier>);

impl ClientCertVerifier for ProofOfPossession {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, cert, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, cert, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
