//! The configuration of a node. Of it, only the addresses change after start.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use kennel_core::pod::eviction::Threshold;
use kennel_core::pod_network::Mode;
use kennel_core::taint::Taint;

use super::addresses::Addresses;
use crate::runtime::PodId;

#[derive(Clone, Debug)]
pub struct Settings {
    pub node_name: String,
    pub addresses: Addresses,
    /// Whether the addresses follow that of the machine.
    pub follow_addresses: bool,
    /// A destination that the machine must reach from its address, if not the internet.
    pub address_peer: Option<ApiAddress>,
    /// How the agent connects its pods to those of other nodes. `None` leaves that to others.
    pub pod_network: Option<PodNetwork>,
    pub paths: Paths,
    /// Labels to register with.
    pub labels: BTreeMap<String, String>,
    /// Annotations of the Node, kept up to date with each start.
    pub annotations: BTreeMap<String, String>,
    /// Taints to register with.
    pub taints: Vec<Taint>,
    /// The address of the kubelet API.
    pub listen: SocketAddr,
    /// Name servers of pods with the DNS policy `ClusterFirst`; empty for those of the Service `kube-system/kube-dns`.
    pub cluster_dns: Vec<IpAddr>,
    /// Whether this agent carries the traffic of services, so that pods can use cluster IPs.
    pub service_proxy: bool,
    /// The domain of Services.
    pub cluster_domain: String,
    /// For the environment of containers; none without an API server.
    pub api: Option<ApiAddress>,
    /// The directory of static pods.
    pub manifest_dir: Option<PathBuf>,
    pub max_pods: u32,
    pub eviction_hard: Vec<Threshold>,
    pub eviction_soft: Vec<Threshold>,
    /// Bounds the grace period of pods that a soft threshold evicts.
    pub eviction_max_pod_grace: Duration,
}

impl Settings {
    /// Default settings, with all files below `dir` and a kubelet API on the loopback interface.
    pub fn defaults(node_name: &str, address: IpAddr, dir: &Path) -> Self {
        Self {
            node_name: node_name.to_owned(),
            addresses: Addresses::new(vec![address]),
            follow_addresses: false,
            address_peer: None,
            pod_network: None,
            paths: Paths {
                data: dir.join("data"),
                logs: dir.join("logs"),
            },
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            taints: Vec::new(),
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            cluster_dns: Vec::new(),
            service_proxy: false,
            cluster_domain: "cluster.local".to_owned(),
            api: None,
            manifest_dir: None,
            max_pods: 110,
            eviction_hard: Vec::new(),
            eviction_soft: Vec::new(),
            eviction_max_pod_grace: Duration::ZERO,
        }
    }
}

/// In the data directory: where the CNI plugin records which pod has which address.
pub(crate) const POD_ADDRESSES: &str = "pod-addresses";

/// How the agent connects its pods to those of other nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PodNetwork {
    pub mode: Mode,
    /// Whether a user has asked for it: then the agent does not start without it. Otherwise the agent leaves the network to a
    /// configuration of somebody else.
    pub required: bool,
    /// The shortest time between probes of a link with direct routes.
    pub link_recheck: Duration,
}

impl PodNetwork {
    /// Of [`Self::link_recheck`]. Each change is an event for all agents, and links seldom begin to drop packets.
    pub const LINK_RECHECK: Duration = Duration::from_mins(5);
}

/// The address of the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiAddress {
    /// A host name or address.
    pub host: String,
    pub port: u16,
}

/// The files of a node.
///
/// ```text
///   <data>/pods/<uid>/volumes/<kind>/<volume>         volumes
///   <data>/pods/<uid>/etc-hosts, resolv.conf          files of a pod
///   <data>/pods/<uid>/containers/<name>/<attempt>     its termination message
///   <data>/pki/                                       certificates
///   <data>/pod-addresses/                             of the pod network
///   <logs>/pods/<namespace>_<name>_<uid>/<container>/<attempt>.log
///   <logs>/containers/<pod>_<namespace>_<container>-<id>.log ─▶ the above
/// ```
#[derive(Clone, Debug)]
pub struct Paths {
    /// Such as `/var/lib/kennel/agent`.
    pub data: PathBuf,
    /// Container logs, such as `/var/log`, where log collectors look.
    pub logs: PathBuf,
}

impl Paths {
    /// A pod's files, without logs.
    pub fn pod(&self, uid: &str) -> PathBuf {
        Self::all_pods(&self.data).join(uid)
    }

    pub fn volume(&self, uid: &str, kind: &str, name: &str) -> PathBuf {
        self.pod(uid).join("volumes").join(kind).join(name)
    }

    pub fn termination_message(&self, uid: &str, container: &str, attempt: u32) -> PathBuf {
        let dir = self.pod(uid).join("containers").join(container);
        dir.join(attempt.to_string())
    }

    pub fn pod_logs(&self, pod: &PodId) -> PathBuf {
        let name = format!("{}_{}_{}", pod.namespace, pod.name, pod.uid);
        Self::all_pod_logs(&self.logs).join(name)
    }

    /// The logs of all pods, below a directory of logs.
    pub(crate) fn all_pod_logs(logs: &Path) -> PathBuf {
        logs.join("pods")
    }

    /// The log of a run, relative to [`Self::pod_logs`].
    pub fn log(container: &str, attempt: u32) -> PathBuf {
        PathBuf::from(container).join(format!("{attempt}.log"))
    }

    /// The directory of links for log collectors.
    pub fn log_links(&self) -> PathBuf {
        Self::all_log_links(&self.logs)
    }

    /// The same, below a directory of logs.
    pub(crate) fn all_log_links(logs: &Path) -> PathBuf {
        logs.join("containers")
    }

    /// Where the CNI plugin records which pod has which address.
    pub fn pod_addresses(&self) -> PathBuf {
        self.data.join(POD_ADDRESSES)
    }

    /// The files of all pods, below a data directory.
    pub fn all_pods(data: &Path) -> PathBuf {
        data.join("pods")
    }
}
