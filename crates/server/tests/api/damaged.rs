//! Stored objects that cannot be read: everything else of their kind is served.

use std::path::Path;

use crate::fixture::{MAPS, TestServer, map, names};
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
        server.get(&format!("{MAPS}/b")).await.is(404);
        // Its name can be used again, and nothing of the damaged one shows.
        server
            .post(MAPS, &map("b", &json!({"k": "new"})))
            .await
            .is(201);
        let server = server.reopen().await;
        let again = server.get(&format!("{MAPS}/b")).await.ok();
        assert_eq!(again["data"]["k"], "new", "{change}");
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
