//! What the tour needs to know of the cluster.

use std::path::PathBuf;

#[derive(Clone, Debug)]
pub(crate) struct Environment {
    pub(crate) kubectl: PathBuf,
    /// The administrator's kubeconfig; the tour writes its files beside it.
    pub(crate) kubeconfig: PathBuf,
    /// All nodes, the tainted one first.
    pub(crate) nodes: Vec<String>,
    /// The node with the taint `node-role.kubernetes.io/control-plane:NoSchedule`.
    pub(crate) tainted: Option<String>,
    /// Whether pods are real processes, with logs and exec.
    pub(crate) runs_processes: bool,
}
