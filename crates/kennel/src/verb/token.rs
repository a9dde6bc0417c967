//! `kennel token`: creates, lists and deletes bootstrap tokens. As upstream, a token is a Secret in `kube-system`.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kennel_client::clock;
use kennel_client::fence::Fence;
use kennel_client::write::{Call, Writer};
use kennel_core::certificates::joining::{TokenLimits, keys};
use kennel_node::agent::identity::join;
use kennel_node::agent::{ApiAddress, machine};
use kube::Config;
use rustls::pki_types::CertificateDer;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::cluster;
use crate::token_args::{TokenArgs, TokenVerb};

const SECRETS: &str = "/api/v1/namespaces/kube-system/secrets";
const NAME_PREFIX: &str = "bootstrap-token-";
const SECRET_TYPE: &str = "bootstrap.kubernetes.io/token";
/// The characters of ids and secrets.
const ALPHABET: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789";

/// A loopback address that no server is told to listen on.
const OTHER_LOOPBACK: Ipv4Addr = Ipv4Addr::new(127, 255, 255, 254);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

pub(crate) async fn run(args: TokenArgs) -> anyhow::Result<()> {
    let config = args.admin.config().await?;
    let client = cluster::client_of(config.clone())?;
    let writer = Writer::new(client, Fence::open());
    let text = match args.verb {
        TokenVerb::Create {
            ttl,
            uses,
            node,
            replace,
            server,
            description,
        } => {
            let token = NewToken {
                ttl,
                uses,
                node,
                replace,
                description,
            };
            create(&writer, &config, token, server).await?
        }
        TokenVerb::List => list(&writer).await?,
        TokenVerb::Delete { token } => delete(&writer, &token).await?,
    };
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(())
}

/// A token to create.
#[derive(Default)]
struct NewToken {
    /// Zero: it never expires.
    ttl: Duration,
    uses: u32,
    node: Option<String>,
    replace: bool,
    description: String,
}

async fn create(
    writer: &Writer,
    config: &Config,
    token: NewToken,
    server: Option<String>,
) -> anyhow::Result<String> {
    let hash = ca_hash(config)?;
    let server = match server {
        Some(server) => server,
        None => reachable_url(&config.cluster_url.to_string()).await,
    };
    let (id, secret) = (random_text(6)?, random_text(16)?);
    let object = secret_object(&id, &secret, &token);
    let call = Call::create(SECRETS, object.to_string());
    let created = writer.send(&call).await;
    created.context("cannot create the token")?;
    let name = token.node.map(|node| format!(" --node-name {node}"));
    let name = name.unwrap_or_default();
    Ok(format!(
        "KENNEL_TOKEN={id}.{secret} kennel agent --server {server} --ca-hash {hash}{name}\n"
    ))
}

fn secret_object(id: &str, secret: &str, token: &NewToken) -> Value {
    let ttl = token.ttl;
    let mut data = json!({
        "token-id": id,
        "token-secret": secret,
        "usage-bootstrap-authentication": "true",
        "auth-extra-groups": "system:bootstrappers:kennel",
        (keys::USES): token.uses.to_string(),
    });
    if let Some(node) = &token.node {
        data[keys::NODE] = node.as_str().into();
        data[keys::REPLACE] = token.replace.to_string().into();
    }
    if !token.description.is_empty() {
        data["description"] = token.description.as_str().into();
    }
    if !ttl.is_zero() {
        data["expiration"] = (clock::now() + ttl).to_string().into();
    }
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": format!("{NAME_PREFIX}{id}"), "namespace": "kube-system"},
        "type": SECRET_TYPE,
        "stringData": data,
    })
}

/// Cryptographically random text.
fn random_text(length: usize) -> anyhow::Result<String> {
    let mut text = String::new();
    while text.len() < length {
        let mut bytes = [0; 32];
        aws_lc_rs::rand::fill(&mut bytes)
            .ok()
            .context("no random numbers from the operating system")?;
        // Bytes beyond the last multiple of 36 would make some characters more likely than others.
        let unbiased = bytes.iter().filter(|byte| **byte < 252);
        let unbiased =
            unbiased.map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()]));
        text.extend(unbiased);
    }
    text.truncate(length);
    Ok(text)
}

fn ca_hash(config: &Config) -> anyhow::Result<String> {
    let roots = config.root_cert.as_ref().and_then(|roots| roots.first());
    let hash = roots.and_then(|der| join::ca_hash(&CertificateDer::from(der.as_slice())));
    hash.context("the kubeconfig has no certificate authority for machines to verify")
}

/// The server's URL for other machines: replaces a loopback address by this machine's, if the server listens there.
async fn reachable_url(url: &str) -> String {
    let url = url.trim_end_matches('/').to_owned();
    let Some(ApiAddress { host, port }) = join::api_address(&url) else {
        return url;
    };
    let host: Option<std::net::IpAddr> = host.parse().ok();
    if !host.is_some_and(|host| host.is_loopback()) {
        return url;
    }
    let own = machine::address(None);
    let elsewhere = format!("https://{}", SocketAddr::new(own, port));
    if listens_on_all(port).await && join::server_addresses(&elsewhere).await.contains(&own) {
        return elsewhere;
    }
    tracing::warn!(
        "the server listens on the loopback address only; start it with --listen 0.0.0.0:{port} for other machines to reach it"
    );
    url
}

/// Whether a server whose address is a loopback one listens on all addresses. One that listens on 127.0.0.1 alone also answers this
/// machine at its own address, but no other machine; it does not answer at other loopback addresses.
async fn listens_on_all(port: u16) -> bool {
    let other = SocketAddr::from((OTHER_LOOPBACK, port));
    let connected = tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(other)).await;
    matches!(connected, Ok(Ok(_)))
}

async fn list(writer: &Writer) -> anyhow::Result<String> {
    let path = format!(
        "{SECRETS}?fieldSelector=type%3D{}",
        SECRET_TYPE.replace('/', "%2F")
    );
    let found = writer.send(&Call::get(path)).await;
    let found = found.context("cannot list tokens")?.tree()?;
    let mut text = format!(
        "{:<8} {:<22} {:<6} {:<20} {}\n",
        "ID", "EXPIRES", "USES", "NODES", "DESCRIPTION"
    );
    for secret in found["items"].as_array().into_iter().flatten() {
        let field = |key: &str| {
            let bytes = STANDARD.decode(secret["data"][key].as_str().unwrap_or_default());
            String::from_utf8(bytes.unwrap_or_default()).unwrap_or_default()
        };
        let expires = match field("expiration") {
            never if never.is_empty() => "never".to_owned(),
            time => time,
        };
        let (id, description) = (field("token-id"), field("description"));
        let limits = TokenLimits::read(|key| Some(field(key)));
        let (uses, nodes) = (uses(&limits), nodes(&limits));
        let line = format!("{id:<8} {expires:<22} {uses:<6} {nodes:<20} {description}");
        writeln!(text, "{}", line.trim_end())?;
    }
    Ok(text)
}

/// How often the token can still be used.
fn uses(limits: &TokenLimits) -> String {
    match limits.uses_left() {
        Some(left) => left.to_string(),
        None => "any".to_owned(),
    }
}

/// The nodes that were made with the token.
fn nodes(limits: &TokenLimits) -> String {
    let nodes: Vec<&str> = limits.nodes().collect();
    if nodes.is_empty() {
        "<none>".to_owned()
    } else {
        nodes.join(",")
    }
}

async fn delete(writer: &Writer, token: &str) -> anyhow::Result<String> {
    let id = token.split('.').next().unwrap_or_default();
    let path = format!("{SECRETS}/{NAME_PREFIX}{id}");
    let found = writer.send(&Call::get(path.as_str())).await;
    let found = found.with_context(|| format!("token {id} not found"))?;
    let call = Call::delete(path, &found.written().uid);
    let deleted = writer.send(&call).await;
    deleted.with_context(|| format!("cannot delete token {id}"))?;
    Ok(format!("token {id} deleted\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_text_has_the_length_and_alphabet_asked_for() {
        let (one, other) = (random_text(16).unwrap(), random_text(16).unwrap());
        assert_eq!(one.len(), 16);
        assert!(one.bytes().all(|letter| ALPHABET.contains(&letter)));
        assert_ne!(one, other);
    }

    #[test]
    fn a_token_without_ttl_has_no_expiration() {
        let check = |seconds: u64, expires: bool| {
            let token = NewToken {
                ttl: Duration::from_secs(seconds),
                ..NewToken::default()
            };
            let object = secret_object("id", "secret", &token);
            let data = &object["stringData"];
            assert_eq!(data["expiration"].is_string(), expires, "{seconds}");
            assert!(data["description"].is_null());
        };
        check(0, false);
        check(60, true);
    }
}
