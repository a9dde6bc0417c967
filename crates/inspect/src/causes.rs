//! Why pods of a DaemonSet are not available, node by node.

use std::collections::BTreeMap;

use kennel_core::why::{Answer, Cause, explain};
use kube::Client;

use crate::{Error, snapshot};

/// The messages about nodes with problems, by name.
pub fn of(answer: &Answer) -> BTreeMap<String, String> {
    let nodes = answer.nodes.iter();
    let problems = nodes.filter(|node| !node.ok() || node.cause == Cause::NewPodNotAvailable);
    problems
        .map(|node| (node.node.clone(), node.message.clone()))
        .collect()
}

/// Reads a DaemonSet as `kennel why` does. That lists all nodes and its pods, and the events of pods with problems.
pub async fn read(
    client: &Client,
    namespace: &str,
    name: &str,
) -> Result<BTreeMap<String, String>, Error> {
    let set = snapshot::daemon_set(client, namespace, name).await?;
    let nodes = snapshot::Nodes::read(client).await?;
    let snapshot = snapshot::read(client, set, nodes, None).await?;
    Ok(of(&explain(&snapshot)))
}
