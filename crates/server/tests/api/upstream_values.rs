//! Objects that kube-apiserver has stored in etcd as protobuf: they are read, and written if nothing of them is lost.

use std::sync::Arc;

use kennel_server::schema;
use kennel_store::{Options, Store};
use kennel_test_support::Etcd;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fixture::{DAEMONSETS, MAPS, MERGE, TestServer, daemonset, names, open_losing};
use crate::protobuf::encoder::{self, Style};

const MAP_KEY: &str = "/registry/configmaps/default/m";
const SET_KEY: &str = "/registry/daemonsets/default/agent";

/// A server over an etcd.
async fn server(
    etcd: &Etcd,
    may_lose: &[&str],
) -> (TestServer, Arc<dyn Store<kennel_server::object::Head>>) {
    let dir = TempDir::new().unwrap();
    let store = open_losing(etcd, &Options::new(dir.path()), may_lose).await;
    (TestServer::over(Arc::clone(&store)).await, store)
}

/// Stores an object as kube-apiserver does: without its resourceVersion.
fn store_as_upstream(etcd: &Etcd, key: &str, ty: &str, object: &Value, style: Style) {
    let mut object = object.clone();
    object["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("resourceVersion");
    let ty = schema::find(ty).unwrap();
    etcd.put_from_input(key, &encoder::body(ty, &object, style));
}

/// What does not change when an object is stored in another form.
fn content(object: &Value) -> Value {
    let mut object = object.clone();
    object["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("resourceVersion");
    object
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn protobuf_is_read_and_replaced_by_json() {
    let Some(etcd) = Etcd::start_in_memory() else {
        return;
    };
    let (server, store) = server(&etcd, &[]).await;
    let made = server.post(DAEMONSETS, &daemonset("agent")).await.is(201);
    let mut watch = server
        .watch(&format!("{DAEMONSETS}?resourceVersion=0"))
        .await;
    let first = watch.expect("ADDED", "agent").await;
    assert_eq!(content(&first), content(&made));
    store_as_upstream(&etcd, SET_KEY, "apps.v1.DaemonSet", &made, Style::Go);
    assert!(etcd.stored(SET_KEY).unwrap().starts_with(b"k8s\0"));
    let path = format!("{DAEMONSETS}/agent");
    let shown = server.get(&path).await.ok();
    assert_eq!(content(&shown), content(&made));
    assert_ne!(
        shown["metadata"]["resourceVersion"],
        made["metadata"]["resourceVersion"]
    );
    let changed = watch.expect("MODIFIED", "agent").await;
    assert_eq!(content(&changed), content(&made));

    // At a start, too, which rewrites nothing.
    store.close().await;
    let (server, _store) = self::server(&etcd, &[]).await;
    assert_eq!(server.get(&path).await.ok(), shown);
    assert!(etcd.stored(SET_KEY).unwrap().starts_with(b"k8s\0"));
    let change = json!({"metadata": {"labels": {"changed": "yes"}}});
    let patched = server.patch(MERGE, &path, &change).await.ok();
    assert_eq!(patched["spec"], made["spec"]);
    assert!(etcd.stored(SET_KEY).unwrap().starts_with(b"{"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_with_unknown_fields_is_read_only_until_the_operator_allows_their_loss() {
    let Some(etcd) = Etcd::start_in_memory() else {
        return;
    };
    let (server, store) = server(&etcd, &[]).await;
    let made = server.map("m", &json!({"v": "1"})).await;
    store_as_upstream(&etcd, MAP_KEY, "core.v1.ConfigMap", &made, Style::Newer);
    let stored = etcd.stored(MAP_KEY);
    let path = format!("{MAPS}/m");
    let shown = server.get(&path).await.ok();
    assert_eq!(shown["data"], json!({"v": "1"}));
    let change = json!({"data": {"v": "2"}});
    let refused = server.patch(MERGE, &path, &change).await;
    let said = refused.fails(403, "Forbidden")["message"].to_string();
    assert!(said.contains("core.v1.ConfigMap 15000"), "{said}");
    assert!(
        said.contains(&format!("--store-may-lose-fields {MAP_KEY}")),
        "{said}"
    );
    let put = server.put(&path, &shown).await;
    assert!(put.code == 403 || put.code == 200, "{}", put.text());
    assert_eq!(etcd.stored(MAP_KEY), stored);
    // Nobody took the refusal for the end of it.
    assert!(names(&server.get(MAPS).await.ok()).contains(&"m"));
    store.close().await;

    let (server, store) = self::server(&etcd, &[]).await;
    server
        .patch(MERGE, &path, &change)
        .await
        .fails(403, "Forbidden");
    assert_eq!(etcd.stored(MAP_KEY), stored);
    store.close().await;
    let (server, _store) = self::server(&etcd, &[MAP_KEY]).await;
    let changed = server.patch(MERGE, &path, &change).await.ok();
    assert_eq!(changed["data"], json!({"v": "2"}));

    // One that is deleted and created again has nothing to lose.
    let other = server.map("other", &json!({"v": "1"})).await;
    let key = "/registry/configmaps/default/other";
    store_as_upstream(&etcd, key, "core.v1.ConfigMap", &other, Style::Newer);
    let path = format!("{MAPS}/other");
    server.get(&path).await.ok();
    server
        .patch(MERGE, &path, &change)
        .await
        .fails(403, "Forbidden");
    server.delete(&path).await.ok();
    server.map("other", &json!({"v": "1"})).await;
    server.patch(MERGE, &path, &change).await.ok();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn protobuf_of_another_version_is_set_aside_with_the_reason() {
    let Some(etcd) = Etcd::start_in_memory() else {
        return;
    };
    let (server, _store) = server(&etcd, &[]).await;
    let made = server.post(DAEMONSETS, &daemonset("agent")).await.is(201);
    let mut old = made.clone();
    old["apiVersion"] = "extensions/v1beta1".into();
    store_as_upstream(&etcd, SET_KEY, "apps.v1.DaemonSet", &old, Style::Go);
    let broken = server.get(&format!("{DAEMONSETS}/agent")).await;
    let said = broken.fails(500, "InternalError")["message"].to_string();
    assert!(said.contains("DaemonSet of extensions/v1beta1"), "{said}");
}
