//! Gives one node the control-plane role, once after each start: the label, and the taint that keeps other pods away. What
//! is changed afterwards stays changed until the next start.

use std::time::Duration;

use futures_util::stream::{self, StreamExt as _};
use kennel_client::backoff::{Backoff, Policy};
use kennel_client::feed::Change;
use kennel_client::write::{Call, Failure, Writer};
use kennel_client::{Error, api};
use kennel_types::{Taint, TaintEffect};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::frame::{self, Context, Controller, Setup, Watches};
use crate::informers::Informers;

/// The label, and the key of the taint.
pub const ROLE: &str = "node-role.kubernetes.io/control-plane";
/// After a failed write.
const RETRY: Policy = Policy::exponential(Duration::from_secs(1), Duration::from_mins(1));

/// The node exists.
struct NodeFound;

enum Outcome {
    Labelled,
    Failed(Failure),
    RetryDue,
}

struct ControlPlaneRole {
    writer: Writer,
    node: String,
    retry: Backoff,
}

/// Waits for the node and labels it. Subscribes to the informers, so call it before they run.
pub fn run(
    client: Client,
    informers: &mut Informers,
    node: String,
    setup: Setup,
) -> impl Future<Output = Result<(), Error>> + Send + use<> {
    let mut nodes = informers.nodes.subscribe();
    let name = node.clone();
    let found = async move {
        while let Some(change) = nodes.next().await {
            if matches!(change, Change::Applied(found) if found.name_any() == name) {
                // Dropping the watch here unsubscribes from all later changes of nodes.
                return stream::iter([Change::Synced, Change::Applied(NodeFound)])
                    .chain(stream::pending())
                    .boxed();
            }
        }
        stream::empty().boxed()
    };
    let mut watches = Watches::default();
    watches.add("nodes", stream::once(found).flatten(), |_| NodeFound);
    let writer = setup.writer(client);
    let retry = Backoff::new(RETRY);
    let controller = ControlPlaneRole {
        writer,
        node,
        retry,
    };
    frame::run(controller, watches, setup)
}

impl Controller for ControlPlaneRole {
    type Event = NodeFound;
    type Outcome = Outcome;

    fn name(&self) -> &'static str {
        "control-plane role controller"
    }

    fn handle(&mut self, NodeFound: NodeFound, cx: &mut Context<Self>) {
        self.label(cx);
    }

    fn completed(&mut self, outcome: Outcome, cx: &mut Context<Self>) {
        match outcome {
            Outcome::Labelled => {}
            Outcome::Failed(failure) => {
                tracing::warn!(
                    "giving node {} the control-plane role failed: {failure}",
                    self.node
                );
                cx.after(self.retry.next_delay(), Outcome::RetryDue);
            }
            Outcome::RetryDue => self.label(cx),
        }
    }
}

impl ControlPlaneRole {
    fn label(&self, cx: &mut Context<Self>) {
        let (writer, node) = (self.writer.clone(), self.node.clone());
        cx.spawn(async move {
            match label(&writer, &node).await {
                Ok(()) => Outcome::Labelled,
                Err(failure) => Outcome::Failed(failure),
            }
        });
    }
}

async fn label(writer: &Writer, node: &str) -> Result<(), Failure> {
    let path = api::node_path(node);
    let mut object = writer.send(&Call::get(&*path)).await?.tree()?;
    if !add_role(&mut object) {
        return Ok(());
    }
    writer.send(&Call::replace(path, &object)).await?;
    tracing::info!("node {node} has the control-plane role");
    Ok(())
}

/// Adds label and taint. Returns false if the node has both.
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
    let own = Taint::new(ROLE, TaintEffect::NoSchedule);
    let is_own = |taint: &Value| taint["key"] == ROLE && taint["effect"] == own.effect.as_str();
    if !taints.iter().any(is_own) {
        taints.push(json!(own));
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
