//! The loop that keeps the pod network of this node as the cluster's nodes publish it.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::BoxStream;
use futures_util::{FutureExt as _, StreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kennel_client::events::{Note, Recorder, Reference};
use kennel_client::feed::{self, Change};
use kennel_client::write::Writer;
use kennel_core::cidr::Cidr;
use kennel_core::pod_network::object::{self, show_link};
use kennel_core::pod_network::{Member, Mode};
use kennel_network::cni::{PORTMAP, Places, Pods};
use kennel_network::{Applied, Error, Network};
use kube::Client;
use kube::api::Api;
use kube::runtime::watcher::Config;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

use super::NetworkState;
use super::link::Link;
use super::members::Members;
use super::published::{Published, direct_of};
use crate::agent::Paths;
use crate::cleanup::Resources;
use crate::runtime::Runtime;

/// How often the kernel's state is compared with what it should be, though nothing has changed.
const RESYNC: Duration = Duration::from_mins(1);
/// While the network is not ready.
const RETRY: Duration = Duration::from_secs(2);

/// See the [module](self).
pub(crate) struct Manager {
    pub(crate) name: String,
    pub(crate) mode: Mode,
    /// None until it is needed.
    pub(crate) network: Option<Network>,
    pub(crate) client: Client,
    pub(crate) writer: Writer,
    /// The own object.
    pub(crate) node: watch::Receiver<Arc<Value>>,
    pub(crate) addresses: watch::Receiver<Vec<IpAddr>>,
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) state: watch::Sender<NetworkState>,
    pub(crate) recorder: Recorder,
    pub(crate) paths: Paths,
    /// See [`crate::agent::PodNetwork::link_recheck`].
    pub(crate) link_recheck: Duration,
}

/// What changes while it runs.
struct Progress {
    members: Members,
    applied: Option<Applied>,
    /// When the kernel's state was compared with what it should be.
    compared: Option<Instant>,
    link: Link,
    /// The configurations of others that were said.
    said: BTreeSet<PathBuf>,
    /// The route of others that was said.
    said_route: Option<String>,
}

impl Progress {
    fn new(link_recheck: Duration) -> Self {
        Self {
            members: Members::default(),
            applied: None,
            compared: None,
            link: Link::new(link_recheck),
            said: BTreeSet::new(),
            said_route: None,
        }
    }
}

/// Why the network is not ready, or that it is none of ours.
enum Obstacle {
    Waiting(NetworkState),
    /// The container runtime does not answer, which the node's condition `Ready` says.
    RuntimeDown,
    /// The other nodes' networks are not listed yet: until then, what was reported before holds.
    NotListed,
    /// Another network is configured.
    Foreign(PathBuf),
}

impl From<Error> for Obstacle {
    fn from(error: Error) -> Self {
        Self::Waiting(NetworkState::unavailable(error.reason(), error.to_string()))
    }
}

/// A node that manages no pod network takes part in none, whatever an earlier agent has published.
pub(crate) async fn withdraw(writer: &Writer, node: &Value) {
    if let Err(failure) = Published::default().write(writer, node).await {
        tracing::warn!("leaving the pod network failed: {failure}");
    }
}

impl Manager {
    /// Never returns.
    pub(crate) async fn run(mut self) {
        let mut progress = Progress::new(self.link_recheck);
        let objects: Api<ConfigMap> = Api::namespaced(self.client.clone(), object::NAMESPACE);
        let labelled = Config::default().labels(object::SELECTOR);
        let mut objects = feed::watch(objects, labelled, "nodes' networks");
        loop {
            let wait = self.step(&mut progress).await;
            let probe_at = self.probe_at(&progress);
            tokio::select! {
                Some(change) = objects.next() => take_changes(&mut progress, change, &mut objects),
                Ok(()) = self.node.changed() => {}
                Ok(()) = self.addresses.changed() => {}
                () = tokio::time::sleep(wait) => {}
                () = changed_by_others(&mut self.network) => {}
                () = sleep_until(probe_at) => self.probe(&mut progress),
                outcome = progress.link.ended() => progress.link.on_ended(outcome),
            }
        }
    }

    /// Applies what is known, reports the state, and returns when to do so again though nothing changes.
    async fn step(&mut self, progress: &mut Progress) -> Duration {
        let node = Arc::clone(&self.node.borrow_and_update());
        if !node["metadata"]["uid"].is_string() {
            return RESYNC;
        }
        let (state, wait) = match self.apply(progress, &node).await {
            Ok(()) => {
                let compared = progress.compared.map_or(RESYNC, |at| at.elapsed());
                (NetworkState::Ready, RESYNC.saturating_sub(compared))
            }
            Err(Obstacle::Waiting(state)) => (state, RETRY),
            Err(Obstacle::RuntimeDown | Obstacle::NotListed) => return RETRY,
            Err(Obstacle::Foreign(path)) => {
                self.report_foreign(progress, path, "the agent leaves the pod network to it");
                withdraw(&self.writer, &node).await;
                (NetworkState::Off, RESYNC)
            }
        };
        self.report(state);
        wait
    }

    fn report(&self, state: NetworkState) {
        if *self.state.borrow() == state {
            return;
        }
        match &state {
            NetworkState::Ready => tracing::info!("the pod network is ready"),
            NetworkState::Unavailable { message, .. } => {
                tracing::warn!("the pod network is not ready: {message}");
            }
            NetworkState::Off | NetworkState::Starting { .. } => {}
        }
        self.state.send_replace(state);
    }

    async fn apply(&mut self, progress: &mut Progress, node: &Value) -> Result<(), Obstacle> {
        let places = self.places(progress).await?;
        let own = self.publish(progress, node).await?;
        let Progress { members, .. } = progress;
        if !members.is_synced() {
            return Err(Obstacle::NotListed);
        }
        let own_entry = members.own(&self.name);
        let (published, cluster) = own_entry.ok_or_else(|| waiting_for_range(node))?;
        let configurations = places.as_ref().map(|places| &*places.configurations);
        let recorded = Resources::add_pod_network(&self.paths.data, configurations);
        recorded.map_err(|error| {
            let message = format!("cannot write to {}: {error}", self.paths.data.display());
            Obstacle::Waiting(NetworkState::unavailable("FileNotWritten", message))
        })?;
        // The new address counts at once; the others follow when it is published.
        let own = Member {
            address: own.0,
            link: own.1,
            ..published.clone()
        };
        let Some(network) = &mut self.network else {
            return Err(Obstacle::RuntimeDown);
        };
        let is_due = progress.compared.is_none_or(|at| at.elapsed() >= RESYNC);
        let applied = if is_due {
            let applied = network.apply(&own, members.all(), cluster).await?;
            progress.compared = Some(Instant::now());
            let overlap = network.overlap(cluster).await.err();
            self.report_overlap(progress, overlap);
            applied
        } else {
            network.update(&own, members.all(), cluster).await?
        };
        if let Some(places) = places {
            let pods = Pods {
                range: own.range,
                mtu: applied.mtu,
                leases: self.paths.pod_addresses(),
            };
            if places.write(&pods)? {
                let dir = places.configurations.display();
                tracing::info!("wrote the CNI configuration of pods {} to {dir}", own.range);
                if !places.has_plugin(PORTMAP) {
                    tracing::warn!(
                        "host ports of pods are not forwarded: the CNI plugin {PORTMAP} is missing"
                    );
                }
            }
        }
        report_unreachable(progress.applied.as_ref(), &applied);
        if progress.applied.replace(applied).is_none() {
            self.report_firewall(own.range);
        }
        Ok(())
    }

    /// Where the CNI configuration goes; none for a runtime whose pods have the host's network.
    async fn places(&self, progress: &mut Progress) -> Result<Option<Places>, Obstacle> {
        let places = self.runtime.cni().await;
        let places = places.map_err(|error| {
            tracing::debug!("the container runtime does not say where CNI is configured: {error}");
            Obstacle::RuntimeDown
        })?;
        let Some(places) = places else {
            return Ok(None);
        };
        let foreign = places.foreign().map_err(|error| {
            let dir = places.configurations.display();
            let message = format!("cannot read {dir}: {error}");
            Obstacle::Waiting(NetworkState::unavailable("FileNotRead", message))
        })?;
        if let Some(foreign) = foreign {
            let is_left_alone = progress.applied.is_none() && !places.has_own();
            if is_left_alone || places.has_foreign_file() {
                return Err(Obstacle::Foreign(foreign));
            }
            let consequence = "the runtime uses the first one by name: delete it, or start the agent with --network=none";
            self.report_foreign(progress, foreign, consequence);
        }
        let missing = places.missing_plugins();
        if !missing.is_empty() {
            let dirs: Vec<String> = places
                .plugins
                .iter()
                .map(|dir| dir.display().to_string())
                .collect();
            let message = format!(
                "the CNI plugins {} are not in {}: install them (Debian: containernetworking-plugins), or start the agent \
                 with --network=none",
                missing.join(" and "),
                dirs.join(" or ")
            );
            return Err(Obstacle::Waiting(NetworkState::unavailable(
                "PluginsMissing",
                message,
            )));
        }
        Ok(Some(places))
    }

    /// Publishes the node's part. Returns its address and link.
    async fn publish(
        &mut self,
        progress: &mut Progress,
        node: &Value,
    ) -> Result<(Ipv4Addr, Cidr), Obstacle> {
        let addresses = self.addresses.borrow_and_update().clone();
        let first = addresses.iter().find_map(|one| match one {
            IpAddr::V4(address) => Some(*address),
            IpAddr::V6(_) => None,
        });
        let address = first.ok_or_else(|| {
            let message =
                "the node has no IPv4 address, which the pod network needs: set one with --node-ip";
            Obstacle::Waiting(NetworkState::unavailable("NoIPv4", message.to_owned()))
        })?;
        let network = match &mut self.network {
            Some(network) => network,
            none => none.insert(Network::open()?),
        };
        let underlay = network.underlay(address).await?;
        let link = show_link(address, underlay.link);
        progress.link.follow(&link, || direct_of(node));
        let published = Published {
            mode: Some(self.mode.to_string()),
            link: Some(link),
            direct: progress.link.direct().filter(|_| self.mode == Mode::Auto),
        };
        if let Err(failure) = published.write(&self.writer, node).await {
            let message = format!("publishing the node's network failed: {failure}");
            return Err(Obstacle::Waiting(NetworkState::unavailable(
                "NotPublished",
                message,
            )));
        }
        Ok((address, underlay.link))
    }

    /// When to probe the link; never without another node on it.
    fn probe_at(&self, progress: &Progress) -> Option<Instant> {
        let applied = progress.applied.as_ref();
        let has_peers = applied.is_some_and(|one| !one.plan.probes.is_empty());
        let probes = self.mode == Mode::Auto && has_peers;
        progress.link.due().filter(|_| probes)
    }

    fn probe(&self, progress: &mut Progress) {
        let own = progress.members.own(&self.name);
        if let (Some((own, _)), Some(applied)) = (own, &progress.applied) {
            let probes = applied.plan.probes.iter();
            let peers = probes.map(|(node, probed)| (*node, *probed)).collect();
            progress.link.start(own.clone(), peers);
        }
    }

    /// A route that came after the network does not end what runs.
    fn report_overlap(&self, progress: &mut Progress, found: Option<Error>) {
        let Some(Error::Overlap { cluster, route }) = found else {
            progress.said_route = None;
            return;
        };
        if progress.said_route.as_ref() == Some(&route) {
            return;
        }
        let message = format!(
            "the route {route} was added to this machine and overlaps the pods' range {cluster} (--cluster-cidr): the pod network \
             stays, but packets to pods that the route is more specific for take it, and after a reboot an agent that finds it \
             sets up no network: remove it, or start `kennel up` with another --cluster-cidr"
        );
        tracing::warn!("{message}");
        let note = Note::new(true, "ClusterCIDROverlaps", message);
        self.recorder.emit(Reference::own_node(&self.name), note);
        progress.said_route = Some(route);
    }

    /// A firewall's rules are its owner's: it is named, and not changed.
    fn report_firewall(&self, pods: Cidr) {
        let dropping = kennel_network::firewall::refusing_forwarded(Some(pods));
        let dropping = dropping.unwrap_or_default();
        if dropping.is_empty() {
            return;
        }
        let message = format!(
            "the firewall ({}) drops forwarded packets that no rule of it accepts: accept those of pods there, see `kennel doctor \
             network`",
            dropping.join("; ")
        );
        tracing::warn!("{message}");
        let note = Note::new(true, "FirewallDropsForwarded", message);
        self.recorder.emit(Reference::own_node(&self.name), note);
    }

    fn report_foreign(&self, progress: &mut Progress, path: PathBuf, consequence: &str) {
        if progress.said.contains(&path) {
            return;
        }
        let message = format!(
            "found the CNI configuration {}: {consequence}",
            path.display()
        );
        tracing::warn!("{message}");
        let note = Note::new(true, "ForeignNetworkConfiguration", message);
        self.recorder.emit(Reference::own_node(&self.name), note);
        progress.said.insert(path);
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

async fn changed_by_others(network: &mut Option<Network>) {
    match network {
        Some(network) => network.changed_by_others().await,
        None => std::future::pending().await,
    }
}

/// Takes in this change and all others that are ready, so that a wave of them is applied once.
fn take_changes(
    progress: &mut Progress,
    first: Change<ConfigMap>,
    objects: &mut BoxStream<'static, Change<ConfigMap>>,
) {
    let before = progress.members.all().count();
    progress.members.on_change(first);
    while let Some(Some(change)) = objects.next().now_or_never() {
        progress.members.on_change(change);
    }
    if progress.members.all().count() > before {
        progress.link.on_new_node();
    }
}

fn waiting_for_range(node: &Value) -> Obstacle {
    let message = match node["spec"]["podCIDR"].as_str() {
        Some(range) if !range.is_empty() => {
            "the node's network is not published yet: the node IPAM controller of the cluster does that"
        }
        _ => {
            "the node has no podCIDR yet: the node IPAM controller assigns one; events of the Node say if --cluster-cidr is \
             exhausted"
        }
    };
    Obstacle::Waiting(NetworkState::unavailable(
        "WaitingForRange",
        message.to_owned(),
    ))
}

fn report_unreachable(before: Option<&Applied>, now: &Applied) {
    let unreachable = &now.plan.unreachable;
    if unreachable.is_empty()
        || before.is_some_and(|before| before.plan.unreachable == *unreachable)
    {
        return;
    }
    let names: Vec<&str> = unreachable.iter().map(String::as_str).take(8).collect();
    tracing::warn!(
        "{} nodes have no path to this one, or the range of another node: {}",
        unreachable.len(),
        names.join(", ")
    );
}
