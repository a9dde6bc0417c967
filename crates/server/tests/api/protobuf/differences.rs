//! The same objects in JSON and protobuf must get the same answers.

use std::path::Path;

use http::Method;
use kennel_server::registry::{RESOURCES, Resource};
use kennel_server::schema;
use serde_json::{Value, json};

use super::encoder::{Style, body};
use super::{difference, request, type_named, without_zeros};
use crate::fixture::TestServer;

/// Posts an object twice, and says how the answers differ. Nothing is kept.
async fn compare(server: &TestServer, row: &Resource, object: &Value) -> Option<String> {
    let ty = type_named(row.schema);
    let namespace = object["metadata"]["namespace"]
        .as_str()
        .unwrap_or("default");
    let target = collection(row, namespace);
    let told = server.post(&target, object).await;
    let sent = body(ty, object, Style::Go);
    let sent = server.send(request(Method::POST, &target, sent)).await;
    let (sent, told) = (settled(sent.json()), settled(told.json()));
    let differs = difference(&sent, &told)?;
    Some(format!("{object}: {differs}"))
}

/// Every object of the fuzzers' corpus that a client could send.
#[tokio::test]
async fn objects_mean_the_same_in_json_and_in_protobuf() {
    let server = TestServer::new().await;
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/bodies");
    let (mut compared, mut differences) = (0, Vec::new());
    for file in std::fs::read_dir(corpus).unwrap() {
        let path = file.unwrap().path();
        let Ok(parsed) = schema::parse(&std::fs::read(&path).unwrap()) else {
            continue;
        };
        let Some(row) = row_of(&parsed.value) else {
            continue;
        };
        let mut object = parsed.value;
        if schema::conform(type_named(row.schema), &mut object, &mut Vec::new()).is_err() {
            continue;
        }
        if object["metadata"].get("generateName").is_some() {
            object["metadata"]["name"] = "chosen".into();
        }
        differences.extend(compare(&server, row, &object).await);
        compared += 1;
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(compared >= 19, "only {compared} objects");
}

/// Objects that leave out what Go holds by value, and so writes as zero: of every kind the plainest,
/// and others that are refused for what they leave out.
#[tokio::test]
async fn absent_fields_are_treated_alike_in_json_and_protobuf() {
    let server = TestServer::new().await;
    let mut differences = Vec::new();
    for row in RESOURCES {
        for mut object in [
            json!({}),
            json!({"metadata": {"name": "a"}}),
            least(row.kind),
        ] {
            object["apiVersion"] = row.api_version().into();
            object["kind"] = row.kind.into();
            differences.extend(compare(&server, row, &object).await);
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// An object of that kind with hardly anything in it.
fn least(kind: &str) -> Value {
    let mut object = match kind {
        "DaemonSet" => json!({"spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{}]}},
            "updateStrategy": {"rollingUpdate": {}},
        }}),
        "Pod" => json!({"spec": {
            "containers": [{
                "name": "c", "image": "i", "ports": [{}],
                "env": [{"name": "E", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}],
                "livenessProbe": {"tcpSocket": {}}, "readinessProbe": {"grpc": {}},
                "lifecycle": {"preStop": {"httpGet": {}}},
                "volumeMounts": [{}],
            }],
            "tolerations": [{}], "topologySpreadConstraints": [{}],
            "volumes": [{}, {"name": "v"}, {"name": "w", "emptyDir": {}}, {"name": "x", "projected": {}}],
            "affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{}]}},
        }}),
        "Service" => json!({"spec": {"ports": [{}, {"name": "a", "port": 80}]}}),
        "Endpoints" => json!({"subsets": [{"addresses": [{}], "ports": [{}]}]}),
        "EndpointSlice" => json!({
            "addressType": "IPv4", "ports": [{}], "endpoints": [{"addresses": ["10.1.2.3"]}],
        }),
        "Event" => json!({"metadata": {"namespace": "default"}, "series": {}}),
        "Lease" => json!({"spec": {}}),
        "Node" => json!({"spec": {"taints": [{"key": "a"}]}}),
        "RoleBinding" | "ClusterRoleBinding" => json!({
            "roleRef": {"kind": "ClusterRole", "name": "view"},
            "subjects": [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s"}, {}],
        }),
        "Role" | "ClusterRole" => json!({"rules": [{}]}),
        "CertificateSigningRequest" => json!({"spec": {"usages": ["any"]}}),
        "PersistentVolume" => {
            json!({"spec": {"hostPath": {"path": "/a"}, "capacity": {"storage": "1"}}})
        }
        "PersistentVolumeClaim" => {
            json!({"spec": {"accessModes": ["ReadWriteOnce"], "dataSource": {}}})
        }
        "CSINode" => json!({"spec": {"drivers": [{"name": "d"}]}}),
        "RuntimeClass" => json!({"scheduling": {"tolerations": [{}]}, "overhead": {}}),
        "ControllerRevision" => json!({"data": {}}),
        _ => json!({}),
    };
    object["metadata"]["name"] = "a".into();
    object
}

fn row_of(object: &Value) -> Option<&'static Resource> {
    let is_it =
        |row: &&Resource| object["kind"] == row.kind && object["apiVersion"] == row.api_version();
    RESOURCES.iter().find(is_it)
}

fn collection(row: &Resource, namespace: &str) -> String {
    let root = if row.group.is_empty() { "api" } else { "apis" };
    let version = row.api_version();
    let space = if row.namespaced() {
        format!("namespaces/{namespace}/")
    } else {
        String::new()
    };
    format!("/{root}/{version}/{space}{}?dryRun=All", row.plural)
}

/// An answer without what differs between any two.
fn settled(mut answer: Value) -> Value {
    if let Some(metadata) = answer["metadata"].as_object_mut() {
        for name in ["uid", "creationTimestamp"] {
            metadata.remove(name);
        }
    }
    for name in ["volumes", "containers"] {
        settle_access(&mut answer["spec"][name]);
    }
    without_zeros(&answer)
}

/// The volume that a pod gets for its account's token has a random name.
fn settle_access(value: &mut Value) {
    match value {
        Value::String(text) if text.starts_with("kube-api-access-") => *text = "access".into(),
        Value::Array(items) => items.iter_mut().for_each(settle_access),
        Value::Object(members) => members.values_mut().for_each(settle_access),
        _ => {}
    }
}
