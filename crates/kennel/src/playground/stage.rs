//! What a playground offers to those who show something on it. Only data: it starts and ends nothing.

use std::path::PathBuf;

/// A cluster that is up, and the tools to reach it.
#[derive(Clone, Debug)]
pub(crate) struct Stage {
    /// The kubectl that is run.
    pub(crate) kubectl: PathBuf,
    /// The administrator's kubeconfig; what the tour writes goes beside it.
    pub(crate) kubeconfig: PathBuf,
    /// All nodes, the tainted one first.
    pub(crate) nodes: Vec<String>,
    /// The node with the taint `node-role.kubernetes.io/control-plane:NoSchedule`.
    pub(crate) tainted: Option<String>,
    /// Whether pods are real processes, with logs and a way in.
    pub(crate) runs_processes: bool,
}
