//! Joins a cluster: verifies the server's certificate authority by its hash, and gets the node's first certificate with
//! a bootstrap token. A node that has joined before uses its stored certificate.

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use kennel_client::backoff::{Backoff, Policy};
use kennel_client::clock;
use kennel_client::fence::Fence;
use kennel_client::write::{Call, Writer};
use kennel_types::Timestamp;
use rustls::pki_types::{CertificateDer, ServerName};
use sha2::{Digest as _, Sha256};
use tokio::net::TcpStream;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::authorities;
use super::certificate;
use super::client::{self, Credentials};
use super::rotate::Certifier as _;
use super::{Certificate, CertificateRequest, CsrClient, IdentityError};
use crate::agent::ApiAddress;
use crate::unverified_tls;

const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Before an unreachable server is tried again.
const RETRY: Policy = Policy::exponential(Duration::from_secs(1), Duration::from_secs(15));

/// The file with the node's client certificate.
pub const CLIENT_FILE: &str = "client.pem";
/// The file with the node's serving certificate.
pub const SERVING_FILE: &str = "serving.pem";
/// The file with the cluster's certificate authorities.
pub const CA_FILE: &str = "ca.crt";
/// The hashes of all authorities that the cluster had while the node was in it, one per line: `--ca-hash` may name an
/// earlier one.
const HASHES_FILE: &str = "ca-hashes";
/// The file with the server's URL.
const SERVER_FILE: &str = "server";

/// The flags that `kennel token create` prints.
#[derive(Clone, Debug, Default)]
pub struct JoinOptions {
    /// The server's URL.
    pub server: Option<String>,
    /// A bootstrap token, `<id>.<secret>`.
    pub token: Option<String>,
    /// The hash of the authority's public key, `sha256:<hex>`.
    pub ca_hash: Option<String>,
}

/// The cluster that a node has joined.
#[derive(Clone, Debug)]
pub struct Joined {
    /// The server's URL.
    pub server: String,
    pub ca_pem: String,
    pub client: Certificate,
}

/// Whether the directory has what a node needs to start without a token.
pub fn has_joined(dir: &Path) -> bool {
    [CLIENT_FILE, CA_FILE, SERVER_FILE]
        .iter()
        .all(|file| dir.join(file).exists())
}

/// How a node becomes a member of its cluster.
enum JoinPlan {
    /// With what an earlier join has stored.
    Stored(Joined),
    Token {
        server: String,
        token: String,
        /// The stored authority, unless it is that of another cluster.
        ca_pem: Option<String>,
    },
}

impl JoinPlan {
    fn of(dir: &Path, node: &str, options: &JoinOptions) -> Result<Self, IdentityError> {
        let read = |file: &str| certificate::read(&dir.join(file));
        let (server, ca_pem) = (read(SERVER_FILE)?, read(CA_FILE)?);
        let server = options.server.clone().or(server);
        let server = server.map(|text| text.trim().trim_end_matches('/').to_owned());
        let server = server.ok_or_else(not_joined)?;
        // Another hash is another cluster: do not use the stored authority.
        let hashes = read(HASHES_FILE)?.unwrap_or_default();
        let ca_pem = ca_pem.filter(|pem| has_hash(pem, &hashes, options.ca_hash.as_deref()));
        if let Some(ca_pem) = &ca_pem
            && let Some(client) = Certificate::read(&dir.join(CLIENT_FILE))?
        {
            check_name(&client, node, dir)?;
            if client.not_after > clock::now().as_secs() {
                let ca_pem = ca_pem.clone();
                return Ok(Self::Stored(Joined {
                    server,
                    ca_pem,
                    client,
                }));
            }
            if options.token.is_none() {
                let expired = Timestamp::from_secs(client.not_after).to_string();
                let node = node.to_owned();
                return Err(IdentityError::Expired { node, expired });
            }
        }
        let token = options.token.clone().ok_or_else(not_joined)?;
        if ca_pem.is_none() && options.ca_hash.is_none() {
            let message = "--ca-hash is missing: without it, the server's identity cannot be verified. \
                           `kennel token create` prints it";
            return Err(IdentityError::Usage(message.to_owned()));
        }
        Ok(Self::Token {
            server,
            token,
            ca_pem,
        })
    }
}

/// Fails if a join would fail without asking the server. Creates nothing.
pub fn check(dir: &Path, node: &str, options: &JoinOptions) -> Result<(), IdentityError> {
    JoinPlan::of(dir, node, options).map(drop)
}

/// Joins the cluster, or uses what `dir` has of an earlier join.
pub async fn join(dir: &Path, node: &str, options: &JoinOptions) -> Result<Joined, IdentityError> {
    let (server, token, ca_pem) = match JoinPlan::of(dir, node, options)? {
        JoinPlan::Stored(joined) => match options.token.clone() {
            // The node was deleted or its certificate revoked: it joins again.
            Some(token) if is_rejected(&joined).await => {
                (joined.server, token, Some(joined.ca_pem))
            }
            _ => {
                certificate::write(&dir.join(SERVER_FILE), &joined.server)?;
                remember_hashes(dir, &joined.ca_pem)?;
                return Ok(joined);
            }
        },
        JoinPlan::Token {
            server,
            token,
            ca_pem,
        } => (server, token, ca_pem),
    };
    let ca_pem = match ca_pem {
        Some(pem) => pem,
        None => fetch_ca(&server, options.ca_hash.as_deref().unwrap_or_default()).await?,
    };
    let client = client::fixed_client(&server, &ca_pem, &Credentials::Token(&token))?;
    tracing::info!("joining the cluster of {server} as node {node}");
    // A serving certificate of another cluster is not trusted in this one.
    certificate::remove(&dir.join(SERVING_FILE));
    let request = CertificateRequest::client(node);
    let csr = CsrClient::new(client, dir);
    let client = csr.obtain(&request, &dir.join(CLIENT_FILE)).await;
    let client = client.map_err(|error| match error {
        IdentityError::Unauthorized => IdentityError::Token {
            id: token.split('.').next().unwrap_or_default().to_owned(),
        },
        other => other,
    })?;
    certificate::write(&dir.join(CA_FILE), &ca_pem)?;
    certificate::write(&dir.join(SERVER_FILE), &server)?;
    remember_hashes(dir, &ca_pem)?;
    Ok(Joined {
        server,
        ca_pem,
        client,
    })
}

fn not_joined() -> IdentityError {
    let message = "this machine has not joined a cluster: run `kennel token create` on the server, and the command \
                   that it prints on this machine; or give --kubeconfig";
    IdentityError::Usage(message.to_owned())
}

/// Whether the server rejects the stored certificate. One that cannot be reached does not.
async fn is_rejected(joined: &Joined) -> bool {
    let credentials = Credentials::Certificate(&joined.client);
    let Ok(client) = client::fixed_client(&joined.server, &joined.ca_pem, &credentials) else {
        return false;
    };
    let writer = Writer::new(client, Fence::open());
    let review = r#"{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}"#;
    let call = Call::create("/apis/authentication.k8s.io/v1/selfsubjectreviews", review);
    let answer = tokio::time::timeout(HANDSHAKE_TIMEOUT, writer.send(&call)).await;
    answer.is_ok_and(|answer| answer.is_err_and(|failure| failure.is(401)))
}

/// Whether one of the authorities has this hash, or it is remembered. Without a hash, whether there is an authority.
fn has_hash(ca_pem: &str, remembered: &str, hash: Option<&str>) -> bool {
    let own = hashes(ca_pem);
    match hash {
        Some(hash) => {
            let remembered = remembered.lines().map(str::trim);
            let mut all = own.iter().map(String::as_str).chain(remembered);
            !own.is_empty() && all.any(|own| own.eq_ignore_ascii_case(hash))
        }
        None => !own.is_empty(),
    }
}

fn hashes(ca_pem: &str) -> Vec<String> {
    let all = authorities::parse(ca_pem).unwrap_or_default();
    all.iter().filter_map(ca_hash).collect()
}

/// Adds the hashes of these authorities to those of the cluster.
pub fn remember_hashes(dir: &Path, ca_pem: &str) -> Result<(), IdentityError> {
    let file = dir.join(HASHES_FILE);
    let stored = certificate::read(&file)?.unwrap_or_default();
    let mut all: Vec<String> = stored.lines().map(str::to_owned).collect();
    let before = all.len();
    for hash in hashes(ca_pem) {
        if !all.contains(&hash) {
            all.push(hash);
        }
    }
    if all.len() == before {
        return Ok(());
    }
    certificate::write(&file, &(all.join("\n") + "\n"))
}

/// The pods and certificates of a data directory belong to one node.
fn check_name(client: &Certificate, node: &str, dir: &Path) -> Result<(), IdentityError> {
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
    Err(IdentityError::Usage(format!(
        "{dir} belongs to {name}: give that name with --node-name, or another --data-dir for node {node}"
    )))
}

/// The hash of a certificate's public key, as kubeadm writes it: `sha256:<hex>`.
pub fn ca_hash(certificate: &CertificateDer<'_>) -> Option<String> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let hash = Sha256::digest(certificate.public_key().raw);
    Some(format!("sha256:{}", data_encoding::HEXLOWER.encode(&hash)))
}

/// The server's certificate authority, which it sends along with its certificate, if it has the expected hash.
async fn fetch_ca(server: &str, expected: &str) -> Result<String, IdentityError> {
    let mut retry = Backoff::new(RETRY);
    let chain = loop {
        match fetch_chain(server).await {
            Ok(chain) => break chain,
            Err(error) => tracing::warn!("{error}"),
        }
        retry.sleep().await;
    };
    let hashes: Vec<String> = chain.iter().filter_map(ca_hash).collect();
    let hashed = chain.iter().zip(&hashes);
    let mut matching = hashed.filter(|(_, hash)| hash.eq_ignore_ascii_case(expected));
    match matching.next() {
        Some((certificate, _)) => Ok(to_pem(certificate)),
        None => Err(IdentityError::WrongAuthority {
            server: server.to_owned(),
            expected: expected.to_owned(),
            found: hashes.last().cloned().unwrap_or_default(),
        }),
    }
}

pub fn to_pem(certificate: &CertificateDer<'_>) -> String {
    use base64::Engine as _;
    let text = base64::engine::general_purpose::STANDARD.encode(certificate);
    let mut pem = "-----BEGIN CERTIFICATE-----\n".to_owned();
    for line in text.as_bytes().chunks(64) {
        pem.push_str(&String::from_utf8_lossy(line));
        pem.push('\n');
    }
    pem + "-----END CERTIFICATE-----\n"
}

/// The addresses in the server's certificate. The approver grants no node a certificate for them.
pub async fn server_addresses(server: &str) -> Vec<IpAddr> {
    let chain = fetch_chain(server).await.unwrap_or_default();
    let leaf = chain
        .first()
        .and_then(|der| X509Certificate::from_der(der).ok());
    let Some((_, leaf)) = &leaf else {
        return Vec::new();
    };
    certificate::alternative_names(leaf).1
}

/// The server's certificate chain, unverified.
async fn fetch_chain(server: &str) -> Result<Vec<CertificateDer<'static>>, IdentityError> {
    let unreachable = |why: String| IdentityError::Unreachable {
        server: server.to_owned(),
        why,
    };
    let ApiAddress { host, port } = api_address(server)
        .ok_or_else(|| unreachable("it is not a URL such as https://host:6443".to_owned()))?;
    let name = ServerName::try_from(host.clone());
    let name = name.map_err(|error| unreachable(error.to_string()))?;
    let connect = async {
        let socket = TcpStream::connect((host.as_str(), port)).await?;
        unverified_tls::connector().connect(name, socket).await
    };
    let stream = tokio::time::timeout(HANDSHAKE_TIMEOUT, connect).await;
    let stream = stream.map_err(|_| unreachable("no answer".to_owned()))?;
    let stream = stream.map_err(|error| unreachable(error.to_string()))?;
    let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
    Ok(chain.iter().map(|der| der.clone().into_owned()).collect())
}

/// Of an `https` URL.
pub fn api_address(server: &str) -> Option<ApiAddress> {
    let url: http::Uri = server.parse().ok()?;
    let host = url.host()?.trim_matches(['[', ']']).to_owned();
    let port = url.port_u16().unwrap_or(443);
    (url.scheme_str() == Some("https")).then_some(ApiAddress { host, port })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_parsed() {
        let check = |url: &str, expected: Option<(&str, u16)>| {
            let found = api_address(url).map(|api| (api.host, api.port));
            let expected = expected.map(|(host, port)| (host.to_owned(), port));
            assert_eq!(found, expected, "{url}");
        };
        check("https://10.0.0.1:6443", Some(("10.0.0.1", 6443)));
        check("https://[fd00::1]:6443/", Some(("fd00::1", 6443)));
        check("https://kennel.example", Some(("kennel.example", 443)));
        check("http://kennel.example", None);
        check("kennel.example:6443", None);
    }

    #[test]
    fn an_authority_is_identified_by_the_hash_of_its_key() {
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::default()
            .self_signed(&key)
            .unwrap();
        let hash = ca_hash(certificate.der()).unwrap();
        assert!(hash.starts_with("sha256:") && hash.len() == 71, "{hash}");
        let pem = to_pem(certificate.der());
        assert!(has_hash(&pem, "", None) && has_hash(&pem, "", Some(&hash)));
        assert!(has_hash(&pem, "", Some(&hash.to_uppercase())));
        assert!(!has_hash(&pem, "", Some("sha256:00")));
        assert!(!has_hash("", "", None));
    }

    #[test]
    fn the_hash_of_an_earlier_authority_of_the_cluster_still_names_it() {
        let make = || {
            let key = rcgen::KeyPair::generate().unwrap();
            let params = rcgen::CertificateParams::default();
            to_pem(params.self_signed(&key).unwrap().der())
        };
        let (old, new) = (make(), make());
        let (old_hash, new_hash) = (hashes(&old).remove(0), hashes(&new).remove(0));
        let dir = tempfile::tempdir().unwrap();
        remember_hashes(dir.path(), &old).unwrap();
        remember_hashes(dir.path(), &format!("{new}{old}")).unwrap();
        let stored = std::fs::read_to_string(dir.path().join(HASHES_FILE)).unwrap();
        assert_eq!(stored, format!("{old_hash}\n{new_hash}\n"));
        assert!(has_hash(&new, &stored, Some(&old_hash)));
        assert!(!has_hash(&new, "", Some(&old_hash)));
    }
}
