//! Gives a node the label and the taint of a control plane, once per start of the process. Users may remove them
//! until the next start.

use std::time::Duration;

use crate::informers::Informers;
use futures_util::StreamExt as _;
use kennel_client::feed::Change;
use kennel_client::fence::Fence;
use kennel_client::write::{Call, Failure, Writer};
use kennel_client::{Error, api};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// The label, and the key of the taint.
pub const ROLE: &str = "node-role.kubernetes.io/control-plane";
/// Delay after a failed write.
const RETRY: Duration = Duration::from_secs(1);

/// Waits until the node registers, and marks it. The call subscribes to the informers, so it must come before they
/// run.
pub fn run(
    client: Client,
    informers: &mut Informers,
    node: String,
    stop: CancellationToken,
) -> impl Future<Output = Result<(), Error>> + Send + use<> {
    let mut node_events = informers.nodes();
    let writer = Writer::new(client, Fence::open());
    async move {
        let mark_node = async {
            while let Some(change) = node_events.next().await {
                if matches!(change, Change::Applied(found) if found.name_any() == node) {
                    break;
                }
            }
            drop(node_events);
            while let Err(failure) = mark(&writer, &node).await {
                tracing::warn!("cannot give node {node} the control-plane role: {failure}");
                tokio::time::sleep(RETRY).await;
            }
            std::future::pending().await
        };
        tokio::select! {
            () = stop.cancelled() => Ok(()),
            never = mark_node => never,
        }
    }
}

async fn mark(writer: &Writer, node: &str) -> Result<(), Failure> {
    let path = format!("{}/{node}", api::cluster_path("nodes"));
    let mut object = writer.send(&Call::get(&*path)).await?.tree()?;
    if !add_role(&mut object) {
        return Ok(());
    }
    writer.send(&Call::replace(path, &object)).await?;
    tracing::info!("node {node} has the control-plane role");
    Ok(())
}

/// Adds label and taint; returns whether either was missing.
fn add_role(node: &mut Value) -> bool {
    let label = &mut node["metadata"]["labels"][ROLE];
    let mut changed = label.is_null();
    if changed {
        *label = json!("");
    }
    let taints = &mut node["spec"]["taints"];
    if taints.is_null() {
        *taints = json!([]);
    }
    let taints = taints.as_array_mut().expect("a node's taints are a list");
    let is_ours = |taint: &Value| taint["key"] == ROLE && taint["effect"] == "NoSchedule";
    if !taints.iter().any(is_ours) {
        taints.push(json!({"key": ROLE, "effect": "NoSchedule"}));
        changed = true;
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_role_is_added_once_and_nothing_else_is_touched() {
        let other = json!({"key": "a", "effect": "NoExecute"});
        let mut node = json!({"metadata": {"name": "n", "labels": {"a": "b"}},
            "spec": {"podCIDR": "10.0.0.0/24", "taints": [other]}});
        assert!(add_role(&mut node));
        assert_eq!(
            node,
            json!({"metadata": {"name": "n", "labels": {"a": "b", ROLE: ""}},
                "spec": {"podCIDR": "10.0.0.0/24",
                         "taints": [other, {"key": ROLE, "effect": "NoSchedule"}]}})
        );
        assert!(!add_role(&mut node));
        let mut bare = json!({"metadata": {"name": "n"}, "spec": {}});
        assert!(add_role(&mut bare));
        assert_eq!(bare["spec"]["taints"][0]["key"], ROLE);
    }
}
