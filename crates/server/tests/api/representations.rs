//! Tables and bare metadata instead of objects.

use serde_json::{Value, json};

use crate::fixture::{MAPS, MERGE, TestServer, map, version};

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
const METADATA: &str = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

fn columns(table: &Value) -> Vec<&str> {
    let definitions = table["columnDefinitions"].as_array().expect("columns");
    definitions
        .iter()
        .map(|c| c["name"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn a_list_as_a_table_has_columns_and_rows() {
    let server = TestServer::new().await;
    server.map("a", &json!({"x": "1", "y": "2"})).await;
    let path = format!("{MAPS}?fieldSelector=metadata.name%3Da");
    let answer = server.get_as(&path, TABLE).await;
    let table = answer.ok();
    assert_eq!(
        answer.header(http::header::CONTENT_TYPE),
        "application/json"
    );
    assert_eq!(
        (&table["kind"], &table["apiVersion"]),
        (&json!("Table"), &json!("meta.k8s.io/v1"))
    );
    assert!(version(&table) > 0);
    assert_eq!(columns(&table), ["Name", "Data", "Age"]);
    let row = &table["rows"][0];
    assert_eq!(
        (&row["cells"][0], &row["cells"][1]),
        (&json!("a"), &json!(2))
    );
    let object = &row["object"];
    assert_eq!(
        (&object["kind"], &object["apiVersion"]),
        (&json!("PartialObjectMetadata"), &json!("meta.k8s.io/v1"))
    );
    assert_eq!(object["metadata"]["name"], "a");
    assert!(object.get("data").is_none());
}

#[tokio::test]
async fn rows_carry_as_much_of_the_object_as_asked() {
    let server = TestServer::new().await;
    server.map("a", &json!({"x": "1"})).await;
    for (include, pointer, expected) in [
        ("Object", "/rows/0/object/data/x", Some(json!("1"))),
        (
            "Metadata",
            "/rows/0/object/kind",
            Some(json!("PartialObjectMetadata")),
        ),
        ("None", "/rows/0/object/metadata", None),
    ] {
        let table = server
            .get_as(&format!("{MAPS}/a?includeObject={include}"), TABLE)
            .await
            .ok();
        assert_eq!(
            table.pointer(pointer),
            expected.as_ref(),
            "{include}: {table}"
        );
    }
    server
        .get_as(&format!("{MAPS}/a?includeObject=Some"), TABLE)
        .await
        .fails(400, "BadRequest");
}

/// kubectl asks for nothing in most tables, and for objects when it sorts or watches.
#[tokio::test]
async fn rows_carry_managed_fields_when_the_client_asks_for_objects() {
    let server = TestServer::new().await;
    let by_me = format!("{MAPS}?fieldManager=me");
    let one = map("a", &json!({"k": "1"}));
    server.post(&by_me, &one).await.is(201);
    let me = Some(json!("me"));
    for (query, expected) in [
        ("", None),
        ("?includeObject=Metadata", me.clone()),
        ("?includeObject=Object", me),
    ] {
        let one = server.get_as(&format!("{MAPS}/a{query}"), TABLE).await.ok();
        let list = server.get_as(&format!("{MAPS}{query}"), TABLE).await.ok();
        let managers = "/object/metadata/managedFields/0/manager";
        let rows = list["rows"].as_array().unwrap();
        for row in [&one["rows"][0], &rows[0]] {
            assert_eq!(row["cells"][0], "a");
            assert_eq!(row.pointer(managers), expected.as_ref(), "{query}: {row}");
        }
    }
}

#[tokio::test]
async fn the_old_version_of_tables_is_served_on_request() {
    let server = TestServer::new().await;
    let accept = "application/json;as=Table;g=meta.k8s.io;v=v1beta1";
    assert_eq!(
        server.get_as(MAPS, accept).await.ok()["apiVersion"],
        "meta.k8s.io/v1beta1"
    );
    let accept = "application/json;as=Table;g=meta.k8s.io;v=v7";
    server
        .get_as(MAPS, accept)
        .await
        .fails(406, "NotAcceptable");
}

#[tokio::test]
async fn pages_of_tables_go_on() {
    let server = TestServer::new().await;
    server.map("a", &json!({})).await;
    let first = server.get_as(&format!("{MAPS}?limit=1"), TABLE).await.ok();
    assert_eq!(first["metadata"]["remainingItemCount"], 1);
    let token = first["metadata"]["continue"].as_str().unwrap();
    let rest = server
        .get_as(&format!("{MAPS}?limit=1&continue={token}"), TABLE)
        .await
        .ok();
    assert_eq!(rest["rows"][0]["cells"][0], "kube-root-ca.crt");
}

#[tokio::test]
async fn a_watch_as_a_table_names_its_columns_once() {
    let server = TestServer::new().await;
    server.map("a", &json!({})).await;
    let path = format!("{MAPS}?fieldSelector=metadata.name%3Da&resourceVersion=0");
    let mut watch = server.watch_as(&path, TABLE).await;
    let first = watch.next().await.unwrap();
    assert_eq!(
        (&first["type"], &first["object"]["kind"]),
        (&json!("ADDED"), &json!("Table"))
    );
    assert_eq!(columns(&first["object"]), ["Name", "Data", "Age"]);
    let patch = json!({"data": {"k": "v"}});
    let changed = server.patch(MERGE, &format!("{MAPS}/a"), &patch).await.ok();
    let next = watch.next().await.unwrap();
    assert_eq!(next["type"], "MODIFIED");
    assert!(
        next["object"]["columnDefinitions"]
            .as_array()
            .is_none_or(Vec::is_empty)
    );
    assert_eq!(next["object"]["rows"][0]["cells"][1], 1);
    let shown = &next["object"]["rows"][0]["object"];
    assert_eq!(version(shown), version(&changed));
}

#[tokio::test]
async fn metadata_alone_is_served_for_reads_lists_and_watches() {
    let server = TestServer::new().await;
    let made = server.map("a", &json!({"k": "v"})).await;
    let expected = json!({
        "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": made["metadata"],
    });
    assert_eq!(
        server.get_as(&format!("{MAPS}/a"), METADATA).await.ok(),
        expected
    );
    let list = server.get_as(MAPS, METADATA_LIST).await.ok();
    assert_eq!(
        (&list["kind"], &list["apiVersion"]),
        (
            &json!("PartialObjectMetadataList"),
            &json!("meta.k8s.io/v1")
        )
    );
    assert_eq!(list["items"][0], expected);
    let path = format!(
        "{MAPS}?fieldSelector=metadata.name%3Da&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    );
    let mut watch = server.watch_as(&path, METADATA).await;
    assert_eq!(watch.expect("ADDED", "a").await, expected);
    let end = watch.next().await.unwrap();
    assert_eq!(
        (&end["type"], &end["object"]["kind"]),
        (&json!("BOOKMARK"), &json!("PartialObjectMetadata"))
    );
    server.delete(&format!("{MAPS}/a")).await.ok();
    let gone = watch.expect("DELETED", "a").await;
    assert_eq!(gone["kind"], "PartialObjectMetadata");
    assert!(version(&gone) > version(&made));
}

#[tokio::test]
async fn changes_are_answered_in_the_form_asked_for() {
    let server = TestServer::new().await;
    server.map("a", &json!({})).await;
    let mut put = crate::fixture::request(
        http::Method::PUT,
        &format!("{MAPS}/a"),
        Some(&map("a", &json!({"k": "v"}))),
    );
    put.headers_mut()
        .insert(http::header::ACCEPT, METADATA.parse().unwrap());
    let answer = server.send(put).await.ok();
    assert_eq!(answer["kind"], "PartialObjectMetadata");
}

#[tokio::test]
async fn empty_collections_have_tables_too() {
    let server = TestServer::new().await;
    let table = server
        .get_as("/apis/apps/v1/namespaces/default/deployments", TABLE)
        .await
        .ok();
    assert_eq!(columns(&table)[..2], ["Name", "Ready"]);
    assert!(table["rows"].as_array().unwrap().is_empty());
    let events = server
        .get_as("/apis/events.k8s.io/v1/events", TABLE)
        .await
        .ok();
    assert_eq!(columns(&events)[..2], ["Last Seen", "Type"]);
}
