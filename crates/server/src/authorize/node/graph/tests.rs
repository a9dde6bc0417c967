//! How edges come and go with pods.

use serde_json::{Value, json};

use super::*;
use crate::object::Document;
use crate::registry;

fn row(plural: &str) -> &'static Resource {
    registry::find("", "v1", plural).unwrap()
}

fn record(plural: &str, tree: Value) -> Record<Head> {
    let (value, head) = Document::new(tree).encode(row(plural)).unwrap();
    Record {
        key: "".into(),
        value,
        head,
        created: 1,
        modified: 1,
    }
}

fn pod(name: &str, node: &str, secret: &str) -> Record<Head> {
    record(
        "pods",
        json!({
            "metadata": {"name": name, "namespace": "d", "uid": name},
            "spec": {
                "nodeName": node, "serviceAccountName": "default",
                "volumes": [{"name": "v", "secret": {"secretName": secret}}],
            },
        }),
    )
}

fn apply(graph: &mut Graph, before: Option<&Record<Head>>, after: Option<&Record<Head>>) {
    graph.apply(row("pods"), before, after);
}

#[track_caller]
fn check(graph: &Graph, node: &str, secret: &str, expected: bool) {
    let related = graph.relates(node, ReferencedKind::Secret, "d", secret);
    assert_eq!(related, expected, "{node} {secret}");
}

#[test]
fn an_edge_lives_as_long_as_the_last_pod_that_makes_it() {
    let mut graph = Graph::default();
    let (one, two) = (pod("one", "a", "s"), pod("two", "a", "s"));
    apply(&mut graph, None, Some(&one));
    apply(&mut graph, None, Some(&two));
    check(&graph, "a", "s", true);
    check(&graph, "b", "s", false);
    check(&graph, "a", "other", false);
    assert!(!graph.relates("a", ReferencedKind::ConfigMap, "d", "s"));
    assert!(!graph.relates("a", ReferencedKind::Secret, "elsewhere", "s"));
    assert!(graph.relates("a", ReferencedKind::ServiceAccount, "d", "default"));
    apply(&mut graph, Some(&one), None);
    check(&graph, "a", "s", true);
    apply(&mut graph, Some(&two), None);
    check(&graph, "a", "s", false);
    assert!(graph.sets.is_empty() && graph.nodes.is_empty());
}

#[test]
fn a_pod_gives_rights_only_while_it_is_bound() {
    let mut graph = Graph::default();
    let (waiting, bound) = (pod("p", "", "s"), pod("p", "a", "s"));
    apply(&mut graph, None, Some(&waiting));
    check(&graph, "", "s", false);
    apply(&mut graph, Some(&waiting), Some(&bound));
    check(&graph, "a", "s", true);
    // A status write changes nothing, and counts nothing twice.
    apply(&mut graph, Some(&bound), Some(&bound));
    apply(&mut graph, Some(&bound), None);
    check(&graph, "a", "s", false);
}

#[test]
fn another_pod_of_the_same_name_is_another_pod() {
    let mut graph = Graph::default();
    let old = pod("p", "a", "s");
    let mut new = pod("p", "a", "t");
    new.head.uid = "another".into();
    apply(&mut graph, None, Some(&old));
    apply(&mut graph, Some(&old), Some(&new));
    check(&graph, "a", "s", false);
    check(&graph, "a", "t", true);
}

#[test]
fn mirror_pods_give_their_node_nothing() {
    let mut graph = Graph::default();
    let mirror = record(
        "pods",
        json!({
            "metadata": {"name": "m", "namespace": "d", "uid": "m", "annotations": {MIRROR_ANNOTATION: "x"}},
            "spec": {"nodeName": "a", "imagePullSecrets": [{"name": "s"}]},
        }),
    );
    apply(&mut graph, None, Some(&mirror));
    check(&graph, "a", "s", false);
    assert!(graph.nodes.is_empty());
}

#[test]
fn volumes_and_their_secrets_are_reached_through_the_claim() {
    let mut graph = Graph::default();
    let claiming = record(
        "pods",
        json!({
            "metadata": {"name": "p", "namespace": "d", "uid": "p"},
            "spec": {"nodeName": "a", "volumes": [
                {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]},
        }),
    );
    let volume = record(
        "persistentvolumes",
        json!({
            "metadata": {"name": "pv", "uid": "pv"},
            "spec": {
                "claimRef": {"namespace": "d", "name": "c"},
                "csi": {"nodeStageSecretRef": {"namespace": "d", "name": "stage"},
                        "controllerExpandSecretRef": {"namespace": "d", "name": "control"}},
            },
        }),
    );
    apply(&mut graph, None, Some(&claiming));
    assert!(!graph.claims("a", "pv"));
    graph.apply(row("persistentvolumes"), None, Some(&volume));
    assert!(graph.claims("a", "pv") && !graph.claims("b", "pv"));
    check(&graph, "a", "stage", true);
    check(&graph, "b", "stage", false);
    check(&graph, "a", "control", false);
    graph.apply(row("persistentvolumes"), Some(&volume), None);
    assert!(!graph.claims("a", "pv"));
    check(&graph, "a", "stage", false);
}

#[test]
fn the_pods_of_a_daemonset_cost_one_set_of_names() {
    let mut graph = Graph::default();
    for number in 0..50_000 {
        let (node, set) = (number % 1000, number / 1000);
        let made = pod(
            &format!("p{number}"),
            &format!("n{node}"),
            &format!("s{set}"),
        );
        apply(&mut graph, None, Some(&made));
    }
    assert_eq!((graph.sets.len(), graph.nodes.len()), (50, 1000));
    check(&graph, "n999", "s49", true);
    let counts = graph.nodes.values().map(Vec::capacity).sum::<usize>();
    let bytes = counts * size_of::<(Arc<ReferenceSet>, u32)>();
    assert!(bytes < 2 << 20, "{bytes} bytes of counts");
}
