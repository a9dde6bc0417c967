//! How a machine becomes a node: it makes sure that the server is the one that was meant, and gets its first
//! certificate with a token. Who has one already needs nothing of this.

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use kennel_client::clock;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use sha2::{Digest as _, Sha256};
use tokio::net::TcpStream;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::door::{self, Shown};
use super::{Desk, IdentityError, Pair, Wanted, pair};
use crate::unverified_tls;

/// How long a server may take to say who it is.
const ANSWER: Duration = Duration::from_secs(10);
/// How soon a server that cannot be reached is tried again; doubled each time.
const RETRY: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(15);

/// The file with the node's own certificate.
pub const CLIENT: &str = "client.pem";
/// The file with the certificate it serves with.
pub const SERVING: &str = "serving.pem";
const AUTHORITY: &str = "ca.crt";
const SERVER: &str = "server";

/// What `kennel token create` prints.
#[derive(Clone, Debug, Default)]
pub struct Invitation {
    /// The server's URL.
    pub server: Option<String>,
    /// A bootstrap token, `<id>.<secret>`.
    pub token: Option<String>,
    /// The hash of the authority's public key, `sha256:<hex>`.
    pub ca_hash: Option<String>,
}

/// What a node that has joined has.
#[derive(Clone, Debug)]
pub struct Joined {
    /// The server's URL.
    pub server: String,
    /// The cluster's authority, as PEM.
    pub ca_pem: String,
    /// The node's own certificate.
    pub client: Pair,
}

/// Has this directory what a node needs to come back without an invitation?
pub fn has_joined(dir: &Path) -> bool {
    [CLIENT, AUTHORITY, SERVER]
        .iter()
        .all(|file| dir.join(file).exists())
}

/// Joins, or comes back with what `dir` holds.
pub async fn join(
    dir: &Path,
    node: &str,
    invitation: &Invitation,
) -> Result<Joined, IdentityError> {
    let read = |file: &str| pair::read(&dir.join(file));
    let (server, ca_pem) = (read(SERVER)?, read(AUTHORITY)?);
    let server = invitation.server.clone().or(server);
    let server = server.map(|text| text.trim().trim_end_matches('/').to_owned());
    let server = server.ok_or_else(not_joined)?;
    // Another hash is another cluster: what is known of the old one is no good there.
    let ca_pem = ca_pem.filter(|pem| is_meant(pem, invitation.ca_hash.as_deref()));
    if let Some(ca_pem) = &ca_pem
        && let Some(client) = Pair::read(&dir.join(CLIENT))?
    {
        check_name(&client, node, dir)?;
        let good = client.not_after * 1000 > clock::now_ms();
        if good {
            pair::write(&dir.join(SERVER), &server)?;
            let ca_pem = ca_pem.clone();
            return Ok(Joined {
                server,
                ca_pem,
                client,
            });
        }
        if invitation.token.is_none() {
            let ended = clock::rfc3339(client.not_after);
            return Err(IdentityError::Ended { ended });
        }
    }
    let token = invitation.token.as_deref().ok_or_else(not_joined)?;
    let ca_pem = match ca_pem {
        Some(pem) => pem,
        None => authority(&server, invitation.ca_hash.as_deref()).await?,
    };
    let client = door::plain_client(&server, &ca_pem, &Shown::Token(token))?;
    tracing::info!("joining the cluster of {server} as node {node}");
    // What an earlier cluster signed is no good in this one.
    pair::remove(&dir.join(SERVING));
    let desk = Desk::new(client, dir);
    let got = desk.obtain(&Wanted::client(node), &dir.join(CLIENT)).await;
    let client = got.map_err(|error| match error {
        IdentityError::Unauthorized => IdentityError::Token {
            id: token.split('.').next().unwrap_or_default().to_owned(),
        },
        other => other,
    })?;
    pair::write(&dir.join(AUTHORITY), &ca_pem)?;
    pair::write(&dir.join(SERVER), &server)?;
    Ok(Joined {
        server,
        ca_pem,
        client,
    })
}

fn not_joined() -> IdentityError {
    let words = "this machine is no node yet: run `kennel token create` on the server, and here the line that it \
                 prints; or give --kubeconfig";
    IdentityError::Missing(words.to_owned())
}

fn is_meant(ca_pem: &str, hash: Option<&str>) -> bool {
    let der = CertificateDer::from_pem_slice(ca_pem.as_bytes());
    let own = der.ok().and_then(|der| ca_hash(&der));
    match hash {
        Some(hash) => own.is_some_and(|own| own.eq_ignore_ascii_case(hash)),
        None => own.is_some(),
    }
}

/// A data directory belongs to one node: its pods and its certificate are that node's.
fn check_name(client: &Pair, node: &str, dir: &Path) -> Result<(), IdentityError> {
    let chain = client.chain();
    let parsed = chain
        .first()
        .and_then(|der| X509Certificate::from_der(der).ok());
    let name = parsed.as_ref().and_then(|(_, certificate)| {
        let mut names = certificate.subject().iter_common_name();
        names.next()?.as_str().ok()
    });
    let name = name.unwrap_or_default();
    if name == format!("system:node:{node}") {
        return Ok(());
    }
    let dir = dir.display();
    Err(IdentityError::Missing(format!(
        "{dir} belongs to {name}: give that name with --node-name, or another --data-dir for node {node}"
    )))
}

/// The hash of a certificate's public key, as kubeadm writes it: `sha256:<hex>`.
pub fn ca_hash(certificate: &CertificateDer<'_>) -> Option<String> {
    use std::fmt::Write as _;
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let mut text = "sha256:".to_owned();
    for byte in Sha256::digest(certificate.public_key().raw) {
        let _infallible = write!(text, "{byte:02x}");
    }
    Some(text)
}

/// The server's authority, which it sends along with its certificate, if it has the hash that was given.
async fn authority(server: &str, hash: Option<&str>) -> Result<String, IdentityError> {
    let Some(expected) = hash else {
        let words = "--ca-hash is missing: without it, nobody can tell whether the server is the one that was \
                     meant. `kennel token create` prints it";
        return Err(IdentityError::Missing(words.to_owned()));
    };
    let mut retry = RETRY;
    let chain = loop {
        match chain(server).await {
            Ok(chain) => break chain,
            Err(error) => tracing::warn!("{error}"),
        }
        tokio::time::sleep(retry).await;
        retry = (retry * 2).min(RETRY_MAX);
    };
    let hashes: Vec<String> = chain.iter().filter_map(ca_hash).collect();
    let meant = chain.iter().zip(&hashes);
    let mut meant = meant.filter(|(_, hash)| hash.eq_ignore_ascii_case(expected));
    match meant.next() {
        Some((certificate, _)) => Ok(to_pem(certificate)),
        None => Err(IdentityError::WrongAuthority {
            server: server.to_owned(),
            expected: expected.to_owned(),
            found: hashes.last().cloned().unwrap_or_default(),
        }),
    }
}

fn to_pem(certificate: &CertificateDer<'_>) -> String {
    use base64::Engine as _;
    let text = base64::engine::general_purpose::STANDARD.encode(certificate);
    let mut pem = "-----BEGIN CERTIFICATE-----\n".to_owned();
    for line in text.as_bytes().chunks(64) {
        pem.push_str(&String::from_utf8_lossy(line));
        pem.push('\n');
    }
    pem + "-----END CERTIFICATE-----\n"
}

/// The addresses in the server's certificate: no node gets a certificate for them by rule, so none asks.
pub async fn server_addresses(server: &str) -> Vec<IpAddr> {
    let chain = chain(server).await.unwrap_or_default();
    let leaf = chain
        .first()
        .and_then(|der| X509Certificate::from_der(der).ok());
    let Some((_, leaf)) = &leaf else {
        return Vec::new();
    };
    pair::alternative_names(leaf).1
}

/// Whatever certificates the server shows. Nothing is believed yet.
async fn chain(server: &str) -> Result<Vec<CertificateDer<'static>>, IdentityError> {
    let unreachable = |why: String| IdentityError::Unreachable {
        server: server.to_owned(),
        why,
    };
    let (host, port) = host_and_port(server)
        .ok_or_else(|| unreachable("this is no URL such as https://host:6443".to_owned()))?;
    let name = ServerName::try_from(host.clone());
    let name = name.map_err(|error| unreachable(error.to_string()))?;
    let connect = async {
        let socket = TcpStream::connect((host.as_str(), port)).await?;
        unverified_tls::connector().connect(name, socket).await
    };
    let stream = tokio::time::timeout(ANSWER, connect).await;
    let stream = stream.map_err(|_| unreachable("no answer".to_owned()))?;
    let stream = stream.map_err(|error| unreachable(error.to_string()))?;
    let shown = stream.get_ref().1.peer_certificates().unwrap_or_default();
    Ok(shown.iter().map(|der| der.clone().into_owned()).collect())
}

/// Host and port of a URL.
pub fn host_and_port(server: &str) -> Option<(String, u16)> {
    let url: http::Uri = server.parse().ok()?;
    let host = url.host()?.trim_matches(['[', ']']).to_owned();
    (url.scheme_str() == Some("https")).then(|| (host, url.port_u16().unwrap_or(443)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        let check = |url: &str, expected: Option<(&str, u16)>| {
            let expected = expected.map(|(host, port)| (host.to_owned(), port));
            assert_eq!(host_and_port(url), expected, "{url}");
        };
        check("https://10.0.0.1:6443", Some(("10.0.0.1", 6443)));
        check("https://[fd00::1]:6443/", Some(("fd00::1", 6443)));
        check("https://kennel.example", Some(("kennel.example", 443)));
        check("http://kennel.example", None);
        check("kennel.example:6443", None);
    }

    #[test]
    fn an_authority_is_known_by_its_key() {
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::default()
            .self_signed(&key)
            .unwrap();
        let hash = ca_hash(certificate.der()).unwrap();
        assert!(hash.starts_with("sha256:") && hash.len() == 71, "{hash}");
        let pem = to_pem(certificate.der());
        assert!(is_meant(&pem, None) && is_meant(&pem, Some(&hash)));
        assert!(is_meant(&pem, Some(&hash.to_uppercase())));
        assert!(!is_meant(&pem, Some("sha256:00")));
    }
}
