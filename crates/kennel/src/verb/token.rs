//! `kennel token`: what machines join with. A token is a secret in `kube-system`, as upstream keeps it.

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Duration;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kennel_client::clock;
use kennel_client::fence::Fence;
use kennel_client::write::{Call, Writer};
use kennel_node::agent::identity::join;
use kennel_node::agent::machine;
use kube::Config;
use rustls::pki_types::CertificateDer;
use serde_json::{Value, json};

use crate::cluster;
use crate::token_args::{TokenArgs, TokenVerb};

const SECRETS: &str = "/api/v1/namespaces/kube-system/secrets";
const PREFIX: &str = "bootstrap-token-";
const KIND: &str = "bootstrap.kubernetes.io/token";
/// What ids and secrets are made of.
const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789";

/// Does what was asked.
pub(crate) async fn run(args: TokenArgs) -> anyhow::Result<()> {
    let kubeconfig = args.kubeconfig.clone();
    let kubeconfig = kubeconfig.unwrap_or_else(|| args.data_dir.join("admin.kubeconfig"));
    let words = "give the server's --data-dir, or an administrator's --kubeconfig";
    let config = cluster::config(Some(&kubeconfig)).await.context(words)?;
    let client = cluster::of(config.clone())?;
    let writer = Writer::new(client, Fence::open());
    let text = match args.what {
        TokenVerb::Create {
            ttl,
            server,
            description,
        } => create(&writer, &config, ttl, server, &description).await?,
        TokenVerb::List => list(&writer).await?,
        TokenVerb::Delete { token } => delete(&writer, &token).await?,
    };
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(())
}

async fn create(
    writer: &Writer,
    config: &Config,
    ttl: Duration,
    server: Option<String>,
    description: &str,
) -> anyhow::Result<String> {
    let hash = authority_hash(config)?;
    let server = match server {
        Some(server) => server,
        None => reachable(&config.cluster_url.to_string()).await,
    };
    let (id, secret) = (letters(6)?, letters(16)?);
    let object = secret_object(&id, &secret, ttl, description);
    let call = Call::create(SECRETS, object.to_string());
    let made = writer.send(&call).await;
    made.context("the token cannot be made")?;
    Ok(format!(
        "kennel agent --server {server} --token {id}.{secret} --ca-hash {hash}\n"
    ))
}

fn secret_object(id: &str, secret: &str, ttl: Duration, description: &str) -> Value {
    let mut data = json!({
        "token-id": id,
        "token-secret": secret,
        "usage-bootstrap-authentication": "true",
        "auth-extra-groups": "system:bootstrappers:kennel",
    });
    if !description.is_empty() {
        data["description"] = description.into();
    }
    if !ttl.is_zero() {
        let seconds = i64::try_from(ttl.as_secs()).unwrap_or(i64::MAX);
        let ends = (clock::now_ms() / 1000).saturating_add(seconds);
        data["expiration"] = clock::rfc3339(ends).into();
    }
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": format!("{PREFIX}{id}"), "namespace": "kube-system"},
        "type": KIND,
        "stringData": data,
    })
}

/// Letters that nobody can guess.
fn letters(count: usize) -> anyhow::Result<String> {
    let mut text = String::new();
    while text.len() < count {
        let mut bytes = [0; 32];
        let got = aws_lc_rs::rand::fill(&mut bytes);
        got.ok().context("the machine has no random numbers")?;
        // What is beyond the last multiple would make some letters likelier than others.
        let fair = bytes.iter().filter(|byte| **byte < 252);
        let fair = fair.map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()]));
        text.extend(fair);
    }
    text.truncate(count);
    Ok(text)
}

fn authority_hash(config: &Config) -> anyhow::Result<String> {
    let roots = config.root_cert.as_ref().and_then(|roots| roots.first());
    let hash = roots.and_then(|der| join::ca_hash(&CertificateDer::from(der.as_slice())));
    hash.context("the kubeconfig names no certificate authority that machines could check")
}

/// The URL as other machines reach it: one of the loopback address is good for this machine alone.
async fn reachable(url: &str) -> String {
    let url = url.trim_end_matches('/').to_owned();
    let Some((host, port)) = join::host_and_port(&url) else {
        return url;
    };
    let host: Option<std::net::IpAddr> = host.parse().ok();
    if !host.is_some_and(|host| host.is_loopback()) {
        return url;
    }
    let own = machine::address(None);
    let elsewhere = format!("https://{}", std::net::SocketAddr::new(own, port));
    if join::server_addresses(&elsewhere).await.contains(&own) {
        return elsewhere;
    }
    tracing::warn!(
        "the server answers on this machine alone: for others, start it with --listen 0.0.0.0:{port}"
    );
    url
}

async fn list(writer: &Writer) -> anyhow::Result<String> {
    let path = format!(
        "{SECRETS}?fieldSelector=type%3D{}",
        KIND.replace('/', "%2F")
    );
    let found = writer.send(&Call::get(path)).await;
    let found = found.context("tokens cannot be listed")?.tree()?;
    let mut text = format!("{:<8} {:<22} {}\n", "ID", "ENDS", "DESCRIPTION");
    for secret in found["items"].as_array().into_iter().flatten() {
        let field = |key: &str| {
            let bytes = STANDARD.decode(secret["data"][key].as_str().unwrap_or_default());
            String::from_utf8(bytes.unwrap_or_default()).unwrap_or_default()
        };
        let ends = match field("expiration") {
            ends if ends.is_empty() => "never".to_owned(),
            ends => ends,
        };
        let (id, words) = (field("token-id"), field("description"));
        let line = format!("{id:<8} {ends:<22} {words}");
        writeln!(text, "{}", line.trim_end())?;
    }
    Ok(text)
}

async fn delete(writer: &Writer, token: &str) -> anyhow::Result<String> {
    let id = token.split('.').next().unwrap_or_default();
    let path = format!("{SECRETS}/{PREFIX}{id}");
    let found = writer.send(&Call::get(path.as_str())).await;
    let found = found.with_context(|| format!("there is no token {id}"))?;
    let call = Call::delete(path, &found.written().uid);
    let gone = writer.send(&call).await;
    gone.with_context(|| format!("token {id} cannot be deleted"))?;
    Ok(format!("token {id} deleted\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_as_many_as_asked_and_never_the_same() {
        let (one, other) = (letters(16).unwrap(), letters(16).unwrap());
        assert_eq!(one.len(), 16);
        assert!(one.bytes().all(|letter| LETTERS.contains(&letter)));
        assert_ne!(one, other);
    }

    #[test]
    fn a_token_for_ever_has_no_end() {
        let check = |seconds: u64, ends: bool| {
            let object = secret_object("id", "secret", Duration::from_secs(seconds), "");
            let data = &object["stringData"];
            assert_eq!(data["expiration"].is_string(), ends, "{seconds}");
            assert!(data["description"].is_null());
        };
        check(0, false);
        check(60, true);
    }
}
