//! `kennel agent`: this machine as a node, against any Kubernetes API.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use kennel_node::agent::identity::door::Shown;
use kennel_node::agent::identity::join::{self, CLIENT, Invitation};
use kennel_node::agent::identity::{Desk, Door, Joined, Wanted, rotate};
use kennel_node::agent::lock::Lock;
use kennel_node::agent::{ApiAddress, Cluster, Machine, Start, start};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::args::AgentArgs;
use crate::cluster;
use crate::node::{self, Place};
use crate::notify;
use crate::signals::until_told;

/// Runs until told to stop.
pub async fn run(args: AgentArgs) -> anyhow::Result<()> {
    crate::descriptors::raise_limit();
    anyhow::ensure!(
        !args.plays_many(),
        "this program runs one node: start many simulated nodes with `kennel agent`"
    );
    until_told(|stop| be_a_node(args, stop)).await
}

async fn be_a_node(mut args: AgentArgs, stop: CancellationToken) -> anyhow::Result<()> {
    args.data_dir = node::absolute(&args.data_dir);
    let _lock = Lock::take(&args.data_dir)?;
    let machine = Machine::look(&args.data_dir);
    let name = node::name(&args.node, &machine)?;
    let listener = node::listen(args.listen, "--listen").await?;
    notify::waiting("Waiting for the server");
    let joining = joined(&args, &name, &stop);
    let membership = tokio::select! {
        membership = joining => membership?,
        () = stop.cancelled() => return Ok(()),
    };
    let api = membership.as_ref().and_then(|member| member.api.clone());
    let addresses = node::addresses(&args.node, api.as_ref()).await;
    let place = Place {
        data: args.data_dir.clone(),
        api,
        listen: listener.local_addr()?,
        cluster_domain: args.cluster_domain.clone(),
    };
    let settings = node::settings(&args.node, name.clone(), addresses, place)?;
    let runtime = node::runtime(&args.node, &args.data_dir).await?;
    let (begun, has_begun) = oneshot::channel();
    let start = Start {
        settings: Arc::new(settings),
        machine,
        runtime,
        cluster: membership.map(|member| member.cluster),
        listener: Some(listener),
        begun: Some(begun),
    };
    tokio::spawn(tell_begun(name, has_begun));
    Ok(start::run(start, stop).await?)
}

/// Tells a service manager when the node looks after its pods. One that never does has said why it ends.
async fn tell_begun(node: String, begun: oneshot::Receiver<()>) {
    if begun.await.is_ok() {
        notify::ready(&format!("Looking after the pods of node {node}"));
    }
}

/// What belonging to a cluster brings.
struct Membership {
    cluster: Cluster,
    api: Option<ApiAddress>,
}

/// Joins the cluster that was given, or the one joined before. None if there is neither and static pods were asked
/// for.
async fn joined(
    args: &AgentArgs,
    name: &str,
    stop: &CancellationToken,
) -> anyhow::Result<Option<Membership>> {
    let pki = args.data_dir.join("pki");
    if let Some(kubeconfig) = &args.kubeconfig {
        return by_kubeconfig(kubeconfig, &pki).await.map(Some);
    }
    let asked = args.server.is_some() || args.token.is_some() || join::has_joined(&pki);
    if !asked && args.node.manifest_dir.is_some() {
        tracing::info!("no cluster is known: running static pods alone");
        return Ok(None);
    }
    let invitation = Invitation {
        server: args.server.clone(),
        token: args.token.clone(),
        ca_hash: args.ca_hash.clone(),
    };
    let joined = join::join(&pki, name, &invitation).await?;
    by_certificate(joined, name, &pki, stop).map(Some)
}

/// With a certificate of its own, which is kept fresh from here on.
fn by_certificate(
    joined: Joined,
    name: &str,
    pki: &Path,
    stop: &CancellationToken,
) -> anyhow::Result<Membership> {
    let door = Door::new(&joined.server, &joined.ca_pem, &Shown::Pair(&joined.client))?;
    let desk = Arc::new(Desk::new(door.client(), pki));
    let client = door.client();
    let keeping = {
        let (desk, wanted) = (Arc::clone(&desk), Wanted::client(name));
        let (file, stop) = (pki.join(CLIENT), stop.clone());
        async move {
            let current = Some(joined.client);
            let keep = rotate::keep(&*desk, &wanted, &file, current, |pair| door.show(pair));
            stop.run_until_cancelled(keep).await
        }
    };
    tokio::spawn(keeping);
    let authorities = CertificateDer::pem_slice_iter(joined.ca_pem.as_bytes());
    let authorities = authorities.collect::<Result<_, _>>();
    let api = join::host_and_port(&joined.server);
    Ok(Membership {
        cluster: Cluster {
            client,
            authorities: authorities.context("the cluster's certificate authority is unusable")?,
            certifier: desk,
            server: Some(joined.server),
        },
        api: api.map(|(host, port)| ApiAddress { host, port }),
    })
}

/// As the user of a kubeconfig.
async fn by_kubeconfig(kubeconfig: &Path, pki: &Path) -> anyhow::Result<Membership> {
    let config = cluster::config(Some(kubeconfig)).await?;
    let server = config.cluster_url.to_string();
    let server = server.trim_end_matches('/').to_owned();
    let roots = config.root_cert.clone().unwrap_or_default();
    let client = cluster::of(config)?;
    let api = join::host_and_port(&server);
    Ok(Membership {
        cluster: Cluster {
            client: client.clone(),
            authorities: roots.into_iter().map(CertificateDer::from).collect(),
            certifier: Arc::new(Desk::new(client, pki)),
            server: Some(server),
        },
        api: api.map(|(host, port)| ApiAddress { host, port }),
    })
}
