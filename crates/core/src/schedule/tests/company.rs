//! Required pod affinity and anti-affinity.

use serde_json::{Value, json};

use super::desk::{Desk, pinned_to};

const HOST: &str = "kubernetes.io/hostname";

/// A pod with this label, and terms of this kind about that label.
fn pod(app: &str, kind: &str, key: &str, about: &str) -> Value {
    json!({"labels": {"app": app}, "affinity": {kind: {
        "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": key,
            "labelSelector": {"matchLabels": {"app": about}}}]}}})
}

fn on(node: &str, mut spec: Value) -> Value {
    spec["nodeName"] = json!(node);
    spec
}

fn plain(app: &str) -> Value {
    json!({"labels": {"app": app}})
}

/// Nodes a1 and a2 in zone a, b1 in zone b.
fn desk() -> Desk {
    Desk::plain(&["a1", "a2", "b1"])
}

#[test]
fn near_goes_where_such_pods_are() {
    let mut desk = desk();
    desk.pod("db", &on("b1", plain("db")));
    assert_eq!(
        desk.place("p", &pod("web", "podAffinity", "zone", "db")),
        "p -> b1"
    );
    assert_eq!(
        desk.place("q", &pod("web", "podAffinity", "zone", "cache")),
        "q: 0/3 nodes are available: 3 node(s) didn't match pod affinity rules. preemption: 0/3 nodes \
         are available: 3 Preemption is not helpful for scheduling."
    );
    assert_eq!(
        desk.pod("cache", &on("a1", plain("cache")))[0][..6],
        *"q -> a"
    );
}

#[test]
fn near_goes_nowhere_without_the_topology_label() {
    let mut desk = desk();
    desk.pod("db", &on("b1", plain("db")));
    let said = desk.place("p", &pod("web", "podAffinity", "rack", "db"));
    assert!(
        said.contains("3 node(s) didn't match pod affinity rules"),
        "{said}"
    );
}

#[test]
fn the_first_of_a_kind_that_wants_its_like_goes_anywhere() {
    let mut desk = desk();
    let like = pod("web", "podAffinity", "zone", "web");
    assert_eq!(desk.place("p", &like), "p -> a1");
    assert_eq!(desk.place("q", &like)[..6], *"q -> a");
    assert_eq!(desk.place("r", &like)[..6], *"r -> a");
}

#[test]
fn apart_stays_away_in_the_whole_domain() {
    let mut desk = desk();
    desk.pod("db", &on("a1", plain("db")));
    assert_eq!(
        desk.place("p", &pod("web", "podAntiAffinity", HOST, "db")),
        "p -> a2"
    );
    assert_eq!(
        desk.place("q", &pod("web", "podAntiAffinity", "zone", "db")),
        "q -> b1"
    );
    desk.pod("db2", &on("b1", plain("db")));
    assert_eq!(
        desk.place("r", &pod("web", "podAntiAffinity", "zone", "db")),
        "r: 0/3 nodes are available: 3 node(s) didn't match pod anti-affinity rules. preemption: 0/3 \
         nodes are available: 3 No preemption victims found for incoming pod."
    );
    assert_eq!(desk.gone("db2"), ["r -> b1"]);
}

#[test]
fn others_are_kept_away_from_who_wants_to_be_apart() {
    let mut desk = desk();
    desk.pod(
        "lonely",
        &on("a1", pod("lonely", "podAntiAffinity", "zone", "web")),
    );
    assert_eq!(desk.place("p", &plain("web")), "p -> b1");
    let mut full = plain("web");
    full["affinity"] = pinned_to("a2");
    assert_eq!(
        desk.place("q", &full),
        "q: 0/3 nodes are available: 1 node(s) didn't satisfy existing pods anti-affinity rules, \
         2 node(s) didn't satisfy plugin(s) [NodeAffinity]. preemption: 0/3 nodes are available: \
         1 No preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling."
    );
    assert_eq!(desk.gone("lonely"), ["q -> a2"]);
}

#[test]
fn one_on_each_node() {
    let mut desk = desk();
    let spread = pod("web", "podAntiAffinity", HOST, "web");
    let mut places: Vec<String> = ["p", "q", "r"]
        .iter()
        .map(|n| desk.place(n, &spread))
        .collect();
    places.sort();
    let nodes: Vec<&str> = places.iter().map(|p| &p[5..]).collect();
    assert_eq!(nodes.len(), 3);
    assert!(
        desk.place("s", &spread)
            .contains("3 node(s) didn't match pod anti-affinity rules")
    );
    let s = desk.gone("q");
    assert_eq!(s.len(), 1, "{s:?}");
}

#[test]
fn labels_that_change_change_the_company() {
    let mut desk = desk();
    desk.pod("db", &on("b1", plain("other")));
    assert!(
        desk.place("p", &pod("web", "podAffinity", HOST, "db"))
            .contains("affinity rules")
    );
    assert_eq!(desk.pod("db", &on("b1", plain("db"))), ["p -> b1"]);
    assert!(
        desk.place("q", &pod("web", "podAffinity", "rack", "db"))
            .contains("affinity rules")
    );
    assert_eq!(
        desk.node("b1", &json!({"labels": {"rack": "7"}})),
        ["q -> b1"]
    );
}

#[test]
fn namespaces_count_by_name_and_by_label() {
    let mut desk = desk();
    let mut db = plain("db");
    db["namespace"] = json!("data");
    desk.pod("db", &on("b1", db));
    let mut spec = pod("web", "podAffinity", "zone", "db");
    assert!(
        desk.place("own", &spec).contains("affinity rules"),
        "only its own namespace"
    );
    let at = "/affinity/podAffinity/requiredDuringSchedulingIgnoredDuringExecution/0";
    spec.pointer_mut(at).unwrap()["namespaceSelector"] = json!({"matchLabels": {"kind": "data"}});
    assert!(desk.place("p", &spec).contains("affinity rules"));
    let labels = [("kind".to_owned(), "data".to_owned())].into();
    desk.scheduler.namespace(&"data".into(), labels);
    assert_eq!(desk.decide(), ["p -> b1"]);
}

#[test]
fn who_is_in_the_way_may_be_evicted() {
    let mut desk = Desk::plain(&["a1"]);
    desk.pod("db", &on("a1", plain("db")));
    desk.pod("other", &on("a1", plain("other")));
    let mut spec = pod("web", "podAntiAffinity", HOST, "db");
    spec["priority"] = json!(10);
    assert_eq!(desk.pod("p", &spec)[0], "p evicts db from a1");
    assert_eq!(desk.gone("db"), ["p -> a1"]);
}
