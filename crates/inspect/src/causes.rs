//! Why pods of a DaemonSet are not available, node by node.

use std::collections::BTreeMap;

use kennel_core::why::{Answer, Cause, NodeAnswer, explain};
use kube::Client;

use crate::{Error, snapshot};

/// The messages about nodes with problems, by name.
pub fn of(answer: &Answer) -> BTreeMap<String, String> {
    problems(answer)
        .map(|node| (node.node.clone(), node.message.clone()))
        .collect()
}

/// Why a pod is not available.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodCause {
    /// The pod that the message is about; none if that is being deleted, which hides why it failed.
    pub pod: Option<String>,
    pub message: String,
}

/// Reads a DaemonSet as `kennel why` does, and returns the nodes with problems. That lists all nodes and its pods, and the
/// events of pods with problems.
pub async fn read(
    client: &Client,
    namespace: &str,
    name: &str,
) -> Result<BTreeMap<String, PodCause>, Error> {
    let set = snapshot::daemon_set(client, namespace, name).await?;
    let nodes = snapshot::Nodes::read(client).await?;
    let snapshot = snapshot::read(client, set, nodes, None).await?;
    let answer = explain(&snapshot);
    let causes = problems(&answer).map(|node| {
        let pod = node.pod.clone();
        let cause = PodCause {
            pod: pod.filter(|_| node.cause != Cause::Terminating),
            message: node.message.clone(),
        };
        (node.node.clone(), cause)
    });
    Ok(causes.collect())
}

fn problems(answer: &Answer) -> impl Iterator<Item = &NodeAnswer> {
    let nodes = answer.nodes.iter();
    nodes.filter(|node| !node.ok() || node.cause == Cause::NewPodNotAvailable)
}
