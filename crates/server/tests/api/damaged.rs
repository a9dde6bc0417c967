//! Stored objects that cannot be read: everything else of their kind is served.

use std::path::Path;

use crate::fixture::{DAEMONSETS, MAPS, MERGE, NODES, TestServer, daemonset, map, names, node};
use serde_json::json;

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const METADATA: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

fn execute(dir: &Path, sql: &str) -> usize {
    let database = rusqlite::Connection::open(dir.join("kennel.db")).unwrap();
    database.execute(sql, []).unwrap()
}

/// A server of which one config map is spoilt by this change of its row.
async fn with_spoilt(change: &str) -> TestServer {
    let server = TestServer::new().await;
    for name in ["a", "b", "c"] {
        server.map(name, &json!({"k": "v"})).await;
    }
    let key = "/registry/configmaps/default/b";
    let sql = format!("UPDATE kv SET {change} WHERE key = '{key}'");
    let spoil = |dir: &Path| assert_eq!(execute(dir, &sql), 1, "{sql}");
    server.reopen_after(spoil).await
}

#[tokio::test]
async fn every_form_of_a_list_goes_on_without_it() {
    for change in [
        "value = X'7b'",
        // Of a version without checksums: half of it, another object, no object.
        "checksum = NULL, value = CAST(substr(value, 1, length(value) / 2) AS BLOB)",
        "checksum = NULL, value = (SELECT value FROM kv WHERE key = '/registry/configmaps/default/a')",
        "checksum = NULL, value = CAST('[]' AS BLOB)",
    ] {
        let server = with_spoilt(change).await;
        let list = server.get(MAPS).await.ok();
        let found: Vec<_> = names(&list)
            .into_iter()
            .filter(|name| *name != "kube-root-ca.crt")
            .collect();
        assert_eq!(found, ["a", "c"], "{change}");
        let table = server.get_as(MAPS, TABLE).await.ok();
        assert_eq!(table["rows"].as_array().unwrap().len(), 3, "{change}");
        let metadata = server.get_as(MAPS, METADATA).await.ok();
        assert_eq!(metadata["items"].as_array().unwrap().len(), 3, "{change}");
    }
}

const DAMAGED: &str = "are damaged and were set aside";

/// Clients act on 404: garbage collectors delete what a missing owner owned.
#[tokio::test]
async fn requests_for_it_fail_until_it_is_repaired() {
    let server = with_spoilt("value = X'7b'").await;
    let path = format!("{MAPS}/b");
    let new = map("b", &json!({"k": "new"}));
    let patch = json!({"data": {"k": "new"}});
    for (what, answer) in [
        ("get", server.get(&path).await),
        ("put", server.put(&path, &new).await),
        ("patch", server.patch(MERGE, &path, &patch).await),
        ("delete", server.delete(&path).await),
        ("post", server.post(MAPS, &new).await),
        (
            "dry run",
            server.post(&format!("{MAPS}?dryRun=All"), &new).await,
        ),
    ] {
        let status = answer.is(500);
        assert_eq!(status["reason"], "InternalError", "{what}");
        let message = status["message"].as_str().unwrap();
        assert!(
            message.contains(DAMAGED) && message.contains("`kennel doctor`"),
            "{what}: {message}"
        );
    }
    // The repaired one keeps its uid, so that what it owns stays its own.
    let mut repaired = new.clone();
    let uid = "c0ffee00-0000-4000-8000-000000000001";
    repaired["metadata"]["uid"] = uid.into();
    let made = server.post(MAPS, &repaired).await.is(201);
    assert_eq!(made["metadata"]["uid"], uid);
    // Other objects do not choose theirs.
    repaired["metadata"]["name"] = "d".into();
    let made = server.post(MAPS, &repaired).await.is(201);
    assert_ne!(made["metadata"]["uid"], uid);
    let server = server.reopen().await;
    let again = server.get(&path).await.ok();
    assert_eq!(
        (&again["data"]["k"], &again["metadata"]["uid"]),
        (&json!("new"), &json!(uid))
    );
    server.delete(&path).await.ok();
    server.get(&path).await.is(404);
}

#[tokio::test]
async fn a_discarded_one_does_not_exist() {
    let server = with_spoilt("value = X'7b'").await;
    let path = format!("{MAPS}/b");
    server.get(&path).await.is(500);
    let key = "/registry/configmaps/default/b";
    assert_eq!(
        kennel_server::doctor::discard(server.dir(), key).unwrap(),
        1
    );
    server.get(&path).await.is(404);
    server.post(MAPS, &map("b", &json!({}))).await.is(201);
}

/// Agents and controllers make these again, and nothing depends on which one it is.
#[tokio::test]
async fn leases_and_networks_of_nodes_are_created_again() {
    let lease = json!({"metadata": {"name": "x"}, "spec": {}});
    for (path, object, key) in [
        (
            "/apis/coordination.k8s.io/v1/namespaces/default/leases",
            lease,
            "leases/default/x",
        ),
        (
            "/api/v1/namespaces/kube-node-lease/configmaps",
            map("x", &json!({"podCIDR": "10.128.0.0/24"})),
            "configmaps/kube-node-lease/x",
        ),
    ] {
        let server = TestServer::new().await;
        server.post(path, &object).await.is(201);
        let sql = format!("UPDATE kv SET value = X'7b' WHERE key = '/registry/{key}'");
        let server = server
            .reopen_after(|dir| assert_eq!(execute(dir, &sql), 1))
            .await;
        server.get(&format!("{path}/x")).await.is(404);
        server.post(path, &object).await.is(201);
    }
}

/// What garbage collectors ask before they delete pods.
#[tokio::test]
async fn daemon_sets_and_nodes_that_own_pods_are_not_absent() {
    let server = TestServer::new().await;
    server.post(DAEMONSETS, &daemonset("x")).await.is(201);
    server.post(NODES, &node("x")).await.is(201);
    let sql = "UPDATE kv SET checksum = 1 WHERE key IN
               ('/registry/daemonsets/default/x', '/registry/minions/x')";
    let server = server
        .reopen_after(|dir| assert_eq!(execute(dir, sql), 2))
        .await;
    for path in [DAEMONSETS, NODES] {
        server.get(&format!("{path}/x")).await.is(500);
    }
}

/// A namespace that every cluster has is made again, so that the server starts.
#[tokio::test]
async fn objects_of_every_cluster_are_made_again() {
    let server = TestServer::new().await;
    let sql = "UPDATE kv SET value = X'7b' WHERE key IN
               ('/registry/namespaces/default', '/registry/clusterroles/cluster-admin')";
    let server = server
        .reopen_after(|dir| assert_eq!(execute(dir, sql), 2))
        .await;
    server.get("/api/v1/namespaces/default").await.ok();
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    server.get(&format!("{roles}/cluster-admin")).await.ok();
}
