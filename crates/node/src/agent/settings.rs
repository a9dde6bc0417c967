//! How a node is to be run: worked out once at start, never changed.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use kennel_core::pod::eviction::Threshold;
use serde_json::Value;

use crate::runtime::PodId;

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Settings {
    /// Its name in the cluster.
    pub node_name: String,
    /// Its addresses, the one that pods and the server use first.
    pub addresses: Vec<IpAddr>,
    /// Where it keeps its things.
    pub paths: Paths,
    /// Labels to register with.
    pub labels: BTreeMap<String, String>,
    /// Taints to register with, as the API has them.
    pub taints: Vec<Value>,
    /// Where to listen for the server: logs, exec and the like.
    pub listen: SocketAddr,
    /// The name servers of pods that ask for the cluster's.
    pub cluster_dns: Vec<IpAddr>,
    /// The domain of services' names.
    pub cluster_domain: String,
    /// Where the API is, for the environment of containers; none with no server at all.
    pub api: Option<ApiAddress>,
    /// The directory of static pods.
    pub manifest_dir: Option<PathBuf>,
    /// How many pods it takes.
    pub max_pods: u32,
    /// What must be kept free for it to go on, before pods are evicted.
    pub eviction_hard: Vec<Threshold>,
    /// The same, with patience: pods are evicted when it is over.
    pub eviction_soft: Vec<Threshold>,
    /// The most that a pod gets to end when a soft threshold costs it its place.
    pub eviction_max_pod_grace: Duration,
}

impl Settings {
    /// A node of which nothing special is said, that keeps its things in `dir` and is reached by nobody else.
    pub fn plain(node_name: &str, address: IpAddr, dir: &Path) -> Self {
        Self {
            node_name: node_name.to_owned(),
            addresses: vec![address],
            paths: Paths {
                data: dir.join("data"),
                logs: dir.join("logs"),
            },
            labels: BTreeMap::new(),
            taints: Vec::new(),
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            cluster_dns: Vec::new(),
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

/// Where the API is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiAddress {
    /// A host name or address.
    pub host: String,
    /// A port.
    pub port: u16,
}

/// Where a node keeps its things.
///
/// ```text
///   <data>/pods/<uid>/volumes/<kind>/<volume>         volumes
///   <data>/pods/<uid>/etc-hosts, resolv.conf          files of a pod
///   <data>/pods/<uid>/containers/<name>/<attempt>     its termination message
///   <data>/pki/                                       certificates
///   <logs>/pods/<namespace>_<name>_<uid>/<container>/<attempt>.log
///   <logs>/containers/<pod>_<namespace>_<container>-<id>.log ─▶ the above
/// ```
#[derive(Clone, Debug)]
pub struct Paths {
    /// Its own, such as `/var/lib/kennel/agent`.
    pub data: PathBuf,
    /// The logs of containers, such as `/var/log`: log collectors look there.
    pub logs: PathBuf,
}

impl Paths {
    /// All that belongs to a pod and is no log.
    pub fn pod(&self, uid: &str) -> PathBuf {
        self.data.join("pods").join(uid)
    }

    /// A volume of a pod.
    pub fn volume(&self, uid: &str, kind: &str, name: &str) -> PathBuf {
        self.pod(uid).join("volumes").join(kind).join(name)
    }

    /// Where a run of a container leaves its last words.
    pub fn termination_message(&self, uid: &str, container: &str, attempt: u32) -> PathBuf {
        let dir = self.pod(uid).join("containers").join(container);
        dir.join(attempt.to_string())
    }

    /// The directory of a pod's logs.
    pub fn pod_logs(&self, pod: &PodId) -> PathBuf {
        let name = format!("{}_{}_{}", pod.namespace, pod.name, pod.uid);
        self.logs.join("pods").join(name)
    }

    /// The log of a run of a container, within the directory of its pod's logs.
    pub fn log(container: &str, attempt: u32) -> PathBuf {
        PathBuf::from(container).join(format!("{attempt}.log"))
    }

    /// The links that log collectors follow.
    pub fn log_links(&self) -> PathBuf {
        self.logs.join("containers")
    }
}
