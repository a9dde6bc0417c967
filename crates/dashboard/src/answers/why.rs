//! `kennel why` for one node.

use kennel_core::why::{NodeAnswer, explain};
use kennel_inspect::colour::Colours;
use kennel_inspect::text::detail;
use kennel_inspect::{details, snapshot};
use kube::Client;

use crate::failure::Failure;
use crate::protocol::Why;
use crate::route::SetName;

pub(crate) async fn why(client: &Client, set: &SetName, node: &str) -> Result<Why, Failure> {
    let SetName { namespace, name } = set;
    let daemon_set = snapshot::daemon_set(client, namespace, name).await?;
    let nodes = snapshot::Nodes::read(client).await?;
    let mut found = snapshot::read(client, daemon_set, nodes, Some(node)).await?;
    details::read_logs(client, &mut found).await;
    let answer = explain(&found);
    let text = detail::text(&found, &answer, None, Colours::none());
    let Some(node) = answer.nodes.into_iter().next() else {
        return Err(Failure::not_found(format!("there is no node {node}")));
    };
    Ok(Why {
        commands: commands(set, &node),
        answer: node,
        text,
        unreadable: found.unreadable,
    })
}

/// The remedy's commands first.
fn commands(set: &SetName, node: &NodeAnswer) -> Vec<String> {
    let SetName { namespace, name } = set;
    let remedy = node.remedy.as_deref().unwrap_or_default().lines();
    let typed = remedy.filter(|line| line.starts_with("kubectl ") || line.starts_with("kennel "));
    let mut commands: Vec<String> = typed.map(str::to_owned).collect();
    let own = &node.node;
    commands.push(format!("kennel why ds/{name} -n {namespace} --node {own}"));
    for pod in &node.pods {
        let pod = &pod.name;
        commands.push(format!("kubectl describe pod {pod} -n {namespace}"));
        commands.push(format!(
            "kubectl logs {pod} -n {namespace} --all-containers"
        ));
    }
    commands.push(format!("kubectl describe node {own}"));
    commands
}
