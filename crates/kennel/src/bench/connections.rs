//! A client for each node: with a certificate of its own, and one TLS connection.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::stream::{self, StreamExt as _};
use http::{StatusCode, Version};
use kennel_agent::descriptors;
use kennel_client::connection::{self, Origin};
use kennel_client::{api, single_connection};
use kennel_node::agent::identity::Certificate;
use kennel_simulation::{Beside, Clients, Watcher};
use kube::client::Body;
use kube::config::AuthInfo;
use kube::{Client, Config};

use super::certificates::Issuer;
use super::manifest::NODE_PREFIX;
use super::options::{BenchArgs, ConnectionKind};
use super::progress;

/// Nodes that get their certificate and connect at once: fewer than the handshakes that a Kennel server does at once for
/// one address.
const CONNECTING_AT_ONCE: usize = 48;
const PROGRESS_INTERVAL: Duration = Duration::from_secs(2);
/// Files that this process has open beside the connections of nodes.
const OTHER_FILES: u64 = 100;

/// The clients of all nodes, by name.
pub(super) struct Connections {
    clients: HashMap<String, Client>,
    pub(super) kind: ConnectionKind,
    /// What the server chose of what was offered.
    pub(super) protocol: &'static str,
    /// How long certificates and handshakes took.
    pub(super) opened_in: Duration,
}

impl Connections {
    /// Gets certificates with the rights of `config`, and connects with them to its server.
    pub(super) async fn open(
        config: &Config,
        kind: ConnectionKind,
        args: &BenchArgs,
    ) -> Result<Self> {
        let started_at = Instant::now();
        check_descriptors(args.nodes, files_per_node(kind, args.http1))?;
        // One connection, so that none of the issuer's is left when the steps begin.
        let admin = client(config.clone(), args.http1)?;
        let issuer = &Issuer::new(admin);
        let names = (1..=args.nodes).map(|number| format!("{NODE_PREFIX}{number}"));
        let connecting = stream::iter(names).map(|name| connect(issuer, config, name, args.http1));
        let mut connecting = std::pin::pin!(connecting.buffer_unordered(CONNECTING_AT_ONCE));
        let mut clients = HashMap::new();
        let mut protocol = "HTTP/1.1";
        let mut printed_at = Instant::now();
        while let Some(connected) = connecting.next().await {
            let connected = connected?;
            if connected.version == Version::HTTP_2 {
                protocol = "HTTP/2";
            }
            clients.insert(connected.name, connected.client);
            if printed_at.elapsed() > PROGRESS_INTERVAL {
                printed_at = Instant::now();
                let nodes = args.nodes;
                progress(format_args!("  {} of {nodes} connected", clients.len()));
            }
        }
        Ok(Self {
            clients,
            kind,
            protocol,
            opened_in: started_at.elapsed(),
        })
    }

    pub(super) fn into_clients(self) -> Clients {
        let beside = match self.kind {
            ConnectionKind::Agent => Beside::Mounts,
            ConnectionKind::Plain => Beside::Nothing,
        };
        let clients = self.clients;
        let of_node = move |name: &str| {
            let client = clients.get(name).cloned();
            client.expect("every simulated node has connected before")
        };
        Clients {
            watcher: Watcher::EachNode(beside),
            node: Box::new(of_node),
        }
    }
}

struct Connected {
    name: String,
    client: Client,
    version: Version,
}

async fn connect(issuer: &Issuer, config: &Config, name: String, http1: bool) -> Result<Connected> {
    let certificate = issuer.issue(&name).await?;
    let mut config = config.clone();
    config.auth_info = auth_info(&certificate);
    let client = client(config, http1)?;
    // The first request opens the connection, which the watches then share.
    let request = http::Request::get(api::node_path(&name)).body(Body::empty())?;
    let failed = |error| {
        anyhow!(
            "node {name} cannot connect: {}",
            connection::describe(&error)
        )
    };
    let response = client.send(request).await.map_err(failed)?;
    let (version, status) = (response.version(), response.status());
    let body = response.into_body().collect_bytes().await.map_err(failed)?;
    if !status.is_success() && status != StatusCode::NOT_FOUND {
        let said = String::from_utf8_lossy(&body);
        bail!(
            "the server refuses the certificate of node {name} ({status}): check that it trusts the signer of \
             certificate requests (--client-ca-file) and authorises nodes (--authorization-mode=Node,RBAC). It said: {said}"
        );
    }
    Ok(Connected {
        name,
        client,
        version,
    })
}

fn client(config: Config, http1: bool) -> Result<Client> {
    let client = if http1 {
        connection::client(config, Origin::Kubeconfig)
    } else {
        single_connection::client(config, Origin::Kubeconfig)
    };
    client.context("cannot make a client of the API")
}

fn auth_info(certificate: &Certificate) -> AuthInfo {
    AuthInfo {
        client_certificate_data: Some(STANDARD.encode(&certificate.chain_pem)),
        client_key_data: Some(STANDARD.encode(&certificate.key_pem).into()),
        ..AuthInfo::default()
    }
}

/// How many connections a node has at most. With HTTP/1.1: its watches, a lease or status, and a pod.
fn files_per_node(kind: ConnectionKind, http1: bool) -> u64 {
    match (http1, kind) {
        (false, _) => 1,
        (true, ConnectionKind::Plain) => 2 + 2,
        (true, ConnectionKind::Agent) => 6 + 2,
    }
}

/// Raises the limit on open files as far as possible.
fn check_descriptors(nodes: u32, per_node: u64) -> Result<()> {
    descriptors::raise_limit();
    let needed = u64::from(nodes) * per_node + OTHER_FILES;
    let limit = descriptors::limit().unwrap_or(u64::MAX);
    ensure!(limit >= needed, "{}", too_few_files(nodes, needed, limit));
    Ok(())
}

fn too_few_files(nodes: u32, needed: u64, limit: u64) -> String {
    format!(
        "{nodes} nodes with connections of their own need {needed} open files, and this process may open {limit}: start it as \
         root with `prlimit --nofile={needed}:{needed} kennel bench …`, or take fewer --nodes. The server needs as many: see its \
         LimitNOFILE"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_on_open_files_that_is_too_low_is_named_with_the_command_that_raises_it() {
        check_descriptors(1, 1).unwrap();
        let error = check_descriptors(u32::MAX, 1 << 30).map_err(|error| error.to_string());
        if let Err(text) = error {
            assert!(text.contains("prlimit --nofile="), "{text}");
        } else {
            assert_eq!(descriptors::limit(), None);
        }
    }

    #[test]
    fn one_connection_is_enough_for_a_node_with_http2() {
        assert_eq!(files_per_node(ConnectionKind::Agent, false), 1);
        assert!(
            files_per_node(ConnectionKind::Agent, true)
                > files_per_node(ConnectionKind::Plain, true)
        );
    }
}
