//! Tries every resource, verb and subresource as node `a` on objects of node `b` or of no node.

use kennel_server::registry::{CREATE_ONLY, EMPTY, MEASURED, RESOURCES, Resource, Scope};
use kennel_types::Verb;
use serde_json::{Value, json};

use super::fixture::{Fixture, csi_node, event, lease, mirror, pod, signing};

/// What every node may do, because it concerns no other node.
const OPEN: [(&str, &str); 11] = [
    ("get list watch", "services"),
    // The service proxy of a node routes to the endpoints on all nodes.
    ("list watch", "endpointslices"),
    // It looks whether a route of its machine lies in the range of services.
    ("get", "servicecidrs"),
    ("get list watch", "csidrivers"),
    ("get list watch", "runtimeclasses"),
    ("create", "tokenreviews"),
    ("create", "subjectaccessreviews"),
    ("create", "localsubjectaccessreviews"),
    ("create", "selfsubjectaccessreviews"),
    ("create", "selfsubjectrulesreviews"),
    ("create", "selfsubjectreviews"),
];

fn is_open(verb: &str, resource: &str) -> bool {
    let verb = verb.split(' ').next().unwrap();
    let mut open = OPEN.iter();
    open.any(|(verbs, name)| *name == resource && verbs.split(' ').any(|v| v == verb))
}

/// The name of an object of `b` of this resource, or of any object.
fn name(row: &Resource) -> &'static str {
    match row.plural {
        "nodes" | "leases" | "csinodes" => "b",
        "pods" => "pod-b",
        "configmaps" => "map-b",
        "secrets" => "secret-b",
        "serviceaccounts" => "account-b",
        "persistentvolumes" => "volume-b",
        "persistentvolumeclaims" => "claim-b",
        "events" => "event-b",
        "certificatesigningrequests" => "request-b",
        "namespaces" => "default",
        _ => "any",
    }
}

fn collection(group: &str, version: &str, plural: &str, namespace: Option<&str>) -> String {
    let root = if group.is_empty() {
        format!("/api/{version}")
    } else {
        format!("/apis/{group}/{version}")
    };
    match namespace {
        Some(namespace) => format!("{root}/namespaces/{namespace}/{plural}"),
        None => format!("{root}/{plural}"),
    }
}

fn home(row: &Resource) -> Option<&'static str> {
    let namespace = if row.plural == "leases" {
        "kube-node-lease"
    } else {
        "default"
    };
    row.namespaced().then_some(namespace)
}

/// A new object that `b` may create.
fn newcomer(row: &Resource, node_uid: &Value) -> Value {
    match row.plural {
        "nodes" => json!({"metadata": {"name": "b"}}),
        "leases" => lease("b"),
        "csinodes" => csi_node("b"),
        "pods" => mirror("b", node_uid),
        "events" => event("b"),
        "certificatesigningrequests" => signing("b"),
        _ => json!({"metadata": {"name": "new"}}),
    }
}

struct Walk {
    fixture: Fixture,
    refused: Vec<String>,
    open: Vec<String>,
    /// The requests that were wrongly allowed.
    leaks: Vec<String>,
}

impl Walk {
    async fn step(&mut self, what: (&str, &str), method: &str, path: &str, body: Option<&Value>) {
        let (verb, resource) = what;
        let (code, text) = if verb.starts_with("watch") {
            (self.fixture.watch("a", path).await, String::new())
        } else {
            let answer = self.fixture.send("a", method, path, body).await;
            (answer.code, answer.text().to_owned())
        };
        let line = format!("{code} {verb:<55} {resource:<35} {path}");
        match code {
            _ if is_open(verb, resource) => self.open.push(line),
            403 => self.refused.push(line),
            _ => self.leaks.push(format!("{line}\n    {text}")),
        }
    }

    /// Reads of a collection: all of it, and narrowed to what is `b`'s.
    async fn lists(&mut self, resource: &str, path: &str, name: &str) {
        for selector in [
            String::new(),
            format!("fieldSelector=metadata.name%3D{name}"),
            "fieldSelector=spec.nodeName%3Db".to_owned(),
            "fieldSelector=spec.nodeName!%3Da".to_owned(),
            "labelSelector=any%3Da".to_owned(),
        ] {
            let shown = |verb: &str| format!("{verb} {selector}").trim_end().to_owned();
            let list = format!("{path}?{selector}");
            let watch = format!("{path}?watch=true&{selector}");
            self.step((&shown("list"), resource), "GET", &list, None)
                .await;
            self.step((&shown("watch"), resource), "GET", &watch, None)
                .await;
            let what = shown("deletecollection");
            self.step((&what, resource), "DELETE", &list, None).await;
        }
    }

    async fn resource(&mut self, row: &'static Resource, node_uid: &Value) {
        let path = collection(row.group, row.version, row.plural, home(row));
        let (resource, one) = (row.plural, format!("{path}/{}", name(row)));
        let made = self.fixture.server.get(&one).await;
        let stored = if made.code == 200 {
            made.json()
        } else {
            json!({"metadata": {"name": name(row)}})
        };
        let label = json!({"metadata": {"labels": {"mark": "a"}}});
        let new = newcomer(row, node_uid);
        self.lists(resource, &path, name(row)).await;
        if row.namespaced() {
            let everywhere = collection(row.group, row.version, row.plural, None);
            self.lists(resource, &everywhere, name(row)).await;
        }
        self.step(("get", resource), "GET", &one, None).await;
        self.step(("create", resource), "POST", &path, Some(&new))
            .await;
        self.step(("update", resource), "PUT", &one, Some(&stored))
            .await;
        self.step(("patch", resource), "PATCH", &one, Some(&label))
            .await;
        self.step(("delete", resource), "DELETE", &one, None).await;
        for sub in row.subresources {
            let (below, shown) = (
                format!("{one}/{}", sub.name),
                format!("{resource}/{}", sub.name),
            );
            for verb in sub.verbs {
                let (method, body) = match *verb {
                    Verb::Get => ("GET", None),
                    Verb::Update => ("PUT", Some(&stored)),
                    Verb::Patch => ("PATCH", Some(&label)),
                    _ => ("POST", None),
                };
                let other = subresource_body(sub.name);
                let body = if method == "POST" { Some(&other) } else { body };
                self.step((verb.as_str(), &shown), method, &below, body)
                    .await;
            }
        }
    }
}

fn subresource_body(subresource: &str) -> Value {
    match subresource {
        "binding" => {
            json!({"metadata": {"name": "pod-b"}, "target": {"kind": "Node", "name": "a"}})
        }
        "eviction" => json!({"metadata": {"name": "pod-b"}}),
        _ => {
            json!({"spec": {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "pod-b"}}})
        }
    }
}

/// All stored objects, with their resourceVersions.
async fn everything(fixture: &Fixture) -> Vec<Value> {
    let mut all = Vec::new();
    for row in RESOURCES {
        let path = collection(row.group, row.version, row.plural, None);
        all.push(fixture.server.get(&path).await.ok()["items"].clone());
    }
    all
}

#[tokio::test]
async fn a_node_cannot_access_objects_of_other_nodes() {
    let fixture = Fixture::new().await;
    let node_uid = fixture.server.get("/api/v1/nodes/b").await.ok()["metadata"]["uid"].clone();
    let before = everything(&fixture).await;
    let mut walk = Walk {
        fixture,
        refused: Vec::new(),
        open: Vec::new(),
        leaks: Vec::new(),
    };
    for row in RESOURCES {
        walk.resource(row, &node_uid).await;
    }
    for row in CREATE_ONLY {
        let namespace = (row.scope == Scope::Namespaced).then_some("default");
        let path = collection(row.group, row.version, row.plural, namespace);
        let body = subresource_body("binding");
        walk.step(("create", row.plural), "POST", &path, Some(&body))
            .await;
    }
    for row in MEASURED {
        let namespace = (row.scope == Scope::Namespaced).then_some("default");
        let path = collection(row.group, row.version, row.plural, namespace);
        let resource = format!("{}.{}", row.plural, row.group);
        walk.lists(&resource, &path, "any").await;
        let one = format!("{path}/any");
        walk.step(("get", &resource), "GET", &one, None).await;
    }
    for empty in EMPTY {
        let namespace = (empty.scope == Scope::Namespaced).then_some("default");
        let path = collection(empty.group, empty.version, empty.plural, namespace);
        walk.lists(empty.plural, &path, "any").await;
        let one = format!("{path}/any");
        for (verb, method) in [
            ("get", "GET"),
            ("update", "PUT"),
            ("patch", "PATCH"),
            ("delete", "DELETE"),
        ] {
            walk.step((verb, empty.plural), method, &one, Some(&pod("b")))
                .await;
        }
        walk.step(("create", empty.plural), "POST", &path, Some(&pod("b")))
            .await;
    }
    println!("refused to node a ({}):", walk.refused.len());
    println!("{}", walk.refused.join("\n"));
    println!("open to every node ({}):", walk.open.len());
    println!("{}", walk.open.join("\n"));
    assert!(walk.leaks.is_empty(), "leaks:\n{}", walk.leaks.join("\n"));
    assert!(walk.refused.len() > 600, "{}", walk.refused.len());
    assert_eq!(everything(&walk.fixture).await, before, "something changed");
}
