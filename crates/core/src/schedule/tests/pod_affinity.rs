//! Required pod affinity and anti-affinity.

use serde_json::{Value, json};

use super::harness::{Harness, pinned_to};

const HOST: &str = "kubernetes.io/hostname";

/// A pod with this label and a term of this kind about that label.
fn pod(app: &str, kind: &str, key: &str, about: &str) -> Value {
    json!({"labels": {"app": app}, "affinity": {kind: {
        "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": key,
            "labelSelector": {"matchLabels": {"app": about}}}]}}})
}

fn on(node: &str, mut spec: Value) -> Value {
    spec["nodeName"] = json!(node);
    spec
}

fn labelled(app: &str) -> Value {
    json!({"labels": {"app": app}})
}

/// Nodes a1 and a2 in zone a, b1 in zone b.
fn harness() -> Harness {
    Harness::with_nodes(&["a1", "a2", "b1"])
}

#[test]
fn affinity_places_pods_where_matching_pods_are() {
    let mut harness = harness();
    harness.pod("db", &on("b1", labelled("db")));
    assert_eq!(
        harness.place("p", &pod("web", "podAffinity", "zone", "db")),
        "p -> b1"
    );
    assert_eq!(
        harness.place("q", &pod("web", "podAffinity", "zone", "cache")),
        "q: 0/3 nodes are available: 3 node(s) didn't match pod affinity rules. preemption: 0/3 nodes \
         are available: 3 Preemption is not helpful for scheduling."
    );
    assert_eq!(
        harness.pod("cache", &on("a1", labelled("cache")))[0][..6],
        *"q -> a"
    );
}

#[test]
fn affinity_requires_the_topology_label() {
    let mut harness = harness();
    harness.pod("db", &on("b1", labelled("db")));
    let said = harness.place("p", &pod("web", "podAffinity", "rack", "db"));
    assert!(
        said.contains("3 node(s) didn't match pod affinity rules"),
        "{said}"
    );
}

#[test]
fn the_first_pod_that_matches_its_own_affinity_may_go_anywhere() {
    let mut harness = harness();
    let like = pod("web", "podAffinity", "zone", "web");
    assert_eq!(harness.place("p", &like), "p -> a1");
    assert_eq!(harness.place("q", &like)[..6], *"q -> a");
    assert_eq!(harness.place("r", &like)[..6], *"r -> a");
}

#[test]
fn anti_affinity_covers_the_whole_domain() {
    let mut harness = harness();
    harness.pod("db", &on("a1", labelled("db")));
    assert_eq!(
        harness.place("p", &pod("web", "podAntiAffinity", HOST, "db")),
        "p -> a2"
    );
    assert_eq!(
        harness.place("q", &pod("web", "podAntiAffinity", "zone", "db")),
        "q -> b1"
    );
    harness.pod("db2", &on("b1", labelled("db")));
    assert_eq!(
        harness.place("r", &pod("web", "podAntiAffinity", "zone", "db")),
        "r: 0/3 nodes are available: 3 node(s) didn't match pod anti-affinity rules. preemption: 0/3 \
         nodes are available: 3 No preemption victims found for incoming pod."
    );
    assert_eq!(harness.gone("db2"), ["r -> b1"]);
}

#[test]
fn anti_affinity_of_existing_pods_is_respected() {
    let mut harness = harness();
    harness.pod(
        "lonely",
        &on("a1", pod("lonely", "podAntiAffinity", "zone", "web")),
    );
    assert_eq!(harness.place("p", &labelled("web")), "p -> b1");
    let mut full = labelled("web");
    full["affinity"] = pinned_to("a2");
    assert_eq!(
        harness.place("q", &full),
        "q: 0/3 nodes are available: 1 node(s) didn't satisfy existing pods anti-affinity rules, \
         2 node(s) didn't satisfy plugin(s) [NodeAffinity]. preemption: 0/3 nodes are available: \
         1 No preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling."
    );
    assert_eq!(harness.gone("lonely"), ["q -> a2"]);
}

#[test]
fn one_on_each_node() {
    let mut harness = harness();
    let spread = pod("web", "podAntiAffinity", HOST, "web");
    let mut places: Vec<String> = ["p", "q", "r"]
        .iter()
        .map(|n| harness.place(n, &spread))
        .collect();
    places.sort();
    let nodes: Vec<&str> = places.iter().map(|p| &p[5..]).collect();
    assert_eq!(nodes.len(), 3);
    assert!(
        harness
            .place("s", &spread)
            .contains("3 node(s) didn't match pod anti-affinity rules")
    );
    let s = harness.gone("q");
    assert_eq!(s.len(), 1, "{s:?}");
}

#[test]
fn changed_labels_change_affinity() {
    let mut harness = harness();
    harness.pod("db", &on("b1", labelled("other")));
    assert!(
        harness
            .place("p", &pod("web", "podAffinity", HOST, "db"))
            .contains("affinity rules")
    );
    assert_eq!(harness.pod("db", &on("b1", labelled("db"))), ["p -> b1"]);
    assert!(
        harness
            .place("q", &pod("web", "podAffinity", "rack", "db"))
            .contains("affinity rules")
    );
    assert_eq!(
        harness.node("b1", &json!({"labels": {"rack": "7"}})),
        ["q -> b1"]
    );
}

#[test]
fn namespaces_count_by_name_and_by_label() {
    let mut harness = harness();
    let mut db = labelled("db");
    db["namespace"] = json!("data");
    harness.pod("db", &on("b1", db));
    let mut spec = pod("web", "podAffinity", "zone", "db");
    assert!(
        harness.place("own", &spec).contains("affinity rules"),
        "only its own namespace"
    );
    let at = "/affinity/podAffinity/requiredDuringSchedulingIgnoredDuringExecution/0";
    spec.pointer_mut(at).unwrap()["namespaceSelector"] = json!({"matchLabels": {"kind": "data"}});
    assert!(harness.place("p", &spec).contains("affinity rules"));
    let labels = [("kind".to_owned(), "data".to_owned())].into();
    harness.scheduler.namespace(&"data".into(), labels);
    assert_eq!(harness.decide(), ["p -> b1"]);
}

#[test]
fn pods_that_violate_anti_affinity_may_be_preempted() {
    let mut harness = Harness::with_nodes(&["a1"]);
    harness.pod("db", &on("a1", labelled("db")));
    harness.pod("other", &on("a1", labelled("other")));
    let mut spec = pod("web", "podAntiAffinity", HOST, "db");
    spec["priority"] = json!(10);
    assert_eq!(harness.pod("p", &spec)[0], "p evicts db from a1");
    assert_eq!(harness.gone("db"), ["p -> a1"]);
}
