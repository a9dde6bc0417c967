//! Server-side apply of every kind that can be written: what a manager applies again changes nothing, and what others
//! write meanwhile is theirs.

use kennel_server::registry::{RESOURCES, Resource};
use kennel_server::schema::parse_yaml;
use kennel_types::Verb;
use serde_json::{Value, json};

use crate::apply::APPLY;
use crate::fixture::{DAEMONSETS, MERGE, PODS, TestServer, pod};

/// A configuration of each kind. Many values are not in the form in which they are stored: quantities, times, data that is moved,
/// lists and objects that defaults and admission complete.
const CONFIGURATIONS: &str = include_str!("every-kind.yaml");

/// A certificate signing request needs a request.
const REQUEST: &str = include_str!("request.b64");

fn configurations() -> Vec<Value> {
    let documents = CONFIGURATIONS.split("---\n");
    let documents = documents.map(|text| text.replace("REQUEST", REQUEST.trim()));
    let values = documents.map(|text| parse_yaml(text.as_bytes()).unwrap().value);
    values.collect()
}

fn configuration_of<'a>(all: &'a [Value], row: &Resource) -> &'a Value {
    let is_it = |one: &&Value| one["apiVersion"] == row.api_version() && one["kind"] == row.kind;
    let found = all.iter().find(is_it);
    found.unwrap_or_else(|| panic!("no configuration of a {}", row.kind))
}

fn path(row: &Resource, config: &Value) -> String {
    let root = if row.group.is_empty() { "api" } else { "apis" };
    let namespace = if row.namespaced() {
        "/namespaces/default"
    } else {
        ""
    };
    let name = config["metadata"]["name"].as_str().unwrap();
    let (version, plural) = (row.api_version(), row.plural);
    format!("/{root}/{version}{namespace}/{plural}/{name}")
}

#[tokio::test]
async fn applying_the_same_again_changes_nothing_of_any_kind() {
    let server = TestServer::new().await;
    let all = configurations();
    let patched = RESOURCES
        .iter()
        .filter(|row| row.verbs.contains(&Verb::Patch));
    for row in patched {
        let config = configuration_of(&all, row);
        let path = path(row, config);
        let by_me = format!("{path}?fieldManager=me");
        let made = server.patch(APPLY, &by_me, config).await.is(201);
        let again = server.patch(APPLY, &by_me, config).await.ok();
        assert_eq!(again, made, "{} after the same apply", row.kind);
        // Somebody else's label stays, and stays theirs.
        let label = json!({"metadata": {"labels": {"other": "x"}}});
        let by_other = format!("{path}?fieldManager=other");
        let labelled = server.patch(MERGE, &by_other, &label).await.ok();
        let again = server.patch(APPLY, &by_me, config).await.ok();
        assert_eq!(
            again, labelled,
            "{} after a label and the same apply",
            row.kind
        );
        let entries = labelled["metadata"]["managedFields"].as_array().unwrap();
        let others = entries.iter().find(|entry| entry["manager"] == "other");
        let owned = &others.unwrap()["fieldsV1"]["f:metadata"]["f:labels"]["f:other"];
        assert_eq!(*owned, json!({}), "{}", row.kind);
        let mine = |object: &Value| {
            let entries = object["metadata"]["managedFields"].as_array().unwrap();
            let mine = entries.iter().find(|entry| entry["manager"] == "me");
            mine.map(|entry| entry["fieldsV1"].clone())
        };
        assert_eq!(mine(&labelled), mine(&made), "{}", row.kind);
        // A whole object as it was read changes nothing, either.
        let written = server.put(&by_other, &labelled).await.ok();
        assert_eq!(
            written, labelled,
            "{} after it was written as read",
            row.kind
        );
    }
}

/// Admission adds tolerations to those of a manifest. The list is atomic, so that each apply and each replacement leaves
/// them out, and additions alone are valid.
#[tokio::test]
async fn a_manifest_of_a_pod_with_tolerations_is_sent_again() {
    let server = TestServer::new().await;
    let mut manifest = pod("p");
    manifest["spec"]["tolerations"] = json!([{"key": "x", "operator": "Exists"}]);
    let by_me = format!("{PODS}/p?fieldManager=me");
    let made = server.patch(APPLY, &by_me, &manifest).await.is(201);
    assert_eq!(made["spec"]["tolerations"].as_array().unwrap().len(), 3);
    assert_eq!(server.patch(APPLY, &by_me, &manifest).await.ok(), made);
    // Others may be added, and none removed.
    let own = json!([{"key": "x", "operator": "Exists"}, {"key": "y", "operator": "Exists"}]);
    manifest["spec"]["tolerations"] = own.clone();
    let more = server.patch(APPLY, &by_me, &manifest).await.ok();
    assert_eq!(more["spec"]["tolerations"].as_array().unwrap().len(), 4);
    manifest["spec"]["tolerations"] = json!([]);
    let fewer = server.patch(APPLY, &by_me, &manifest).await;
    fewer.fails(422, "Invalid");
    // Without its priority, too.
    let mut read = more.clone();
    read["spec"]["tolerations"] = own;
    for field in ["priority", "preemptionPolicy"] {
        read["spec"].as_object_mut().unwrap().remove(field);
    }
    let written = server.put(&format!("{PODS}/p"), &read).await.ok();
    assert_eq!(written["spec"], more["spec"]);
    assert_eq!(written["metadata"]["generation"], 2);
}

/// The status, where a kind has one, through its subresource; and the approval of a certificate signing request.
#[tokio::test]
async fn every_status_is_applied_through_its_subresource() {
    let server = TestServer::new().await;
    let all = configurations();
    let condition = json!([{
        "type": "Example", "status": "True", "reason": "Fine", "message": "m",
        "lastTransitionTime": "2026-01-02T03:04:05Z",
    }]);
    let mut seen = Vec::new();
    for row in RESOURCES {
        let Some(status) = row.subresource("status") else {
            continue;
        };
        assert!(status.verbs.contains(&Verb::Patch), "{}", row.kind);
        let config = configuration_of(&all, row);
        let path = path(row, config);
        let applied = format!("{path}/status?fieldManager=me");
        let mut body = json!({
            "apiVersion": row.api_version(), "kind": row.kind,
            "metadata": {"name": config["metadata"]["name"]},
        });
        body["status"] = match row.kind {
            "PersistentVolume" => json!({"phase": "Available"}),
            "ResourceQuota" => json!({"hard": {"pods": "1"}, "used": {"pods": "0"}}),
            "CertificateSigningRequest" => json!({}),
            _ => json!({"conditions": condition}),
        };
        if row.kind == "PodDisruptionBudget" {
            let counts = [
                "disruptionsAllowed",
                "currentHealthy",
                "desiredHealthy",
                "expectedPods",
            ];
            for count in counts {
                body["status"][count] = 1.into();
            }
        }
        server
            .patch(APPLY, &applied, &body)
            .await
            .fails(404, "NotFound");
        let creation = format!("{path}?fieldManager=creator");
        let made = server.patch(APPLY, &creation, config).await.is(201);
        let changed = server.patch(APPLY, &applied, &body).await.ok();
        assert_eq!(changed["spec"], made["spec"], "{}", row.kind);
        if row.kind != "CertificateSigningRequest" {
            let entries = changed["metadata"]["managedFields"].as_array().unwrap();
            let mine = entries.iter().find(|entry| entry["manager"] == "me");
            let mine = mine.unwrap_or_else(|| panic!("{} has no entry: {changed}", row.kind));
            assert_eq!(mine["operation"], "Apply", "{}", row.kind);
            assert_eq!(mine["subresource"], "status", "{}", row.kind);
            let owned = mine["fieldsV1"].as_object().unwrap();
            assert_eq!(
                owned.keys().collect::<Vec<_>>(),
                ["f:status"],
                "{}",
                row.kind
            );
        }
        let again = server.patch(APPLY, &applied, &body).await.ok();
        assert_eq!(again, changed, "{} after the same apply", row.kind);
        seen.push(row.kind);
    }
    assert!(seen.len() > 8, "{seen:?}");
}

#[tokio::test]
async fn an_approval_is_applied() {
    let server = TestServer::new().await;
    let all = configurations();
    let requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let is_it = |one: &&Value| one["kind"] == "CertificateSigningRequest";
    let config = all.iter().find(is_it).unwrap();
    server.post(requests, config).await.is(201);
    let body = json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": {"name": "r"},
        "status": {"conditions": [{"type": "Approved", "status": "True", "reason": "Fine"}]},
    });
    let path = format!("{requests}/r/approval?fieldManager=me");
    let approved = server.patch(APPLY, &path, &body).await.ok();
    assert_eq!(approved["status"]["conditions"][0]["type"], "Approved");
    let entries = approved["metadata"]["managedFields"].as_array().unwrap();
    let mine = entries.iter().find(|entry| entry["manager"] == "me");
    assert_eq!(mine.unwrap()["subresource"], "approval");
    assert_eq!(server.patch(APPLY, &path, &body).await.ok(), approved);
}

/// A config that several managers share, of a kind with defaults, keyed lists and atomic maps: in any order of theirs, the
/// outcome is the same.
#[tokio::test]
async fn managers_of_disjoint_fields_of_a_daemon_commute() {
    let server = TestServer::new().await;
    let all = configurations();
    let base = all.iter().find(|one| one["kind"] == "DaemonSet").unwrap();
    let of = |name: &str, spec: Value| json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": name}, "spec": spec});
    let left = json!({"minReadySeconds": 7, "template": {"spec": {
        "containers": [{"name": "left", "image": "l:1", "resources": {"limits": {"cpu": "0.5"}}}]}}});
    let right = json!({"revisionHistoryLimit": 3, "template": {"spec": {
        "containers": [{"name": "right", "image": "r:1"}],
        "volumes": [{"name": "right", "emptyDir": {}}]}}});
    let mut outcomes = Vec::new();
    for (name, order) in [("a", [0, 1]), ("b", [1, 0])] {
        let mut first = base.clone();
        first["metadata"]["name"] = name.into();
        let path = |manager: &str| format!("{DAEMONSETS}/{name}?fieldManager={manager}");
        server.patch(APPLY, &path("base"), &first).await.is(201);
        let writers = [("left", &left), ("right", &right)];
        let mut last = Value::Null;
        for at in order {
            let (manager, spec) = writers[at];
            let config = of(name, spec.clone());
            last = server.patch(APPLY, &path(manager), &config).await.ok();
        }
        let mut spec = last["spec"].clone();
        // The order of items is that in which they came.
        let containers = spec["template"]["spec"]["containers"]
            .as_array_mut()
            .unwrap();
        containers.sort_by_key(|container| container["name"].to_string());
        let entries = last["metadata"]["managedFields"].as_array().unwrap();
        let owned = entries
            .iter()
            .map(|entry| (entry["manager"].to_string(), entry["fieldsV1"].clone()));
        let mut owned: Vec<_> = owned.collect();
        owned.sort_by(|a, b| a.0.cmp(&b.0));
        outcomes.push((spec, owned));
    }
    assert_eq!(outcomes[0], outcomes[1]);
}
