//! Label and field selectors of lists.

use serde_json::json;

use crate::fixture::{MAPS, NODES, PODS, TestServer, map, names, node};

#[tokio::test]
async fn label_selectors_select_in_every_spelling() {
    let server = TestServer::new().await;
    for (name, labels) in [
        ("a", json!({"app": "web", "tier": "front"})),
        ("b", json!({"app": "web"})),
        ("c", json!({"app": "db"})),
        ("d", json!({})),
    ] {
        let mut body = map(name, &json!({}));
        body["metadata"]["labels"] = labels;
        server.post(MAPS, &body).await.is(201);
    }
    for (selector, expected) in [
        ("app=web", "a b"),
        ("app==web", "a b"),
        ("app%3Dweb,tier%3Dfront", "a"),
        ("app!=web", "c d"),
        ("app+in+(web,db)", "a b c"),
        ("app%20in%20(db)", "c"),
        ("app+notin+(web)", "c d"),
        ("app", "a b c"),
        ("!app", "d"),
        ("app,!tier", "b c"),
        ("app+in+(web),+tier", "a"),
        ("app=", ""),
        ("", "a b c d"),
    ] {
        let list = server
            .get(&format!("{MAPS}?labelSelector={selector}"))
            .await
            .ok();
        let mut found = names(&list);
        found.retain(|name| *name != "kube-root-ca.crt");
        assert_eq!(found.join(" "), expected, "{selector}");
    }
}

#[tokio::test]
async fn selectors_that_cannot_be_read_are_refused() {
    let server = TestServer::new().await;
    for query in [
        "labelSelector=a+in",
        "labelSelector=a+in+(",
        "labelSelector=,",
        "labelSelector=-a=b",
        "fieldSelector=metadata.name",
        "fieldSelector=metadata.name+in+(a)",
    ] {
        server
            .get(&format!("{MAPS}?{query}"))
            .await
            .fails(400, "BadRequest");
    }
}

#[tokio::test]
async fn unknown_fields_are_refused_in_upstreams_words() {
    let server = TestServer::new().await;
    let plain =
        "\"spec.x\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"";
    let own = "field label not supported: spec.x";
    for (path, words) in [
        (MAPS, plain),
        ("/apis/apps/v1/daemonsets", plain),
        (PODS, own),
        (NODES, own),
        ("/api/v1/services", own),
        ("/api/v1/secrets", own),
    ] {
        let answer = server
            .get(&format!("{path}?fieldSelector=spec.x%3D1"))
            .await;
        answer.says(400, "BadRequest", words);
    }
}

#[tokio::test]
async fn field_selectors_select_what_each_kind_offers() {
    let server = TestServer::new().await;
    let mut cordoned = node("n1");
    cordoned["spec"] = json!({"unschedulable": true});
    server.post(NODES, &cordoned).await.is(201);
    server.post(NODES, &node("n2")).await.is(201);
    server.pod("p1", "n1").await;
    server.pod("p2", "").await;
    let secret = json!({"metadata": {"name": "s"}, "type": "example.com/t"});
    server
        .post("/api/v1/namespaces/default/secrets", &secret)
        .await
        .is(201);
    for (path, selector, expected) in [
        (NODES, "spec.unschedulable=false", "n2"),
        (NODES, "spec.unschedulable%3Dtrue", "n1"),
        (NODES, "metadata.name=n2", "n2"),
        (PODS, "spec.nodeName=n1", "p1"),
        (PODS, "spec.host=n1", "p1"),
        (PODS, "spec.nodeName=", "p2"),
        (PODS, "spec.nodeName!=n1", "p2"),
        (
            PODS,
            "status.phase!=Succeeded,status.phase!=Failed",
            "p1 p2",
        ),
        (PODS, "metadata.name=p1,metadata.namespace=default", "p1"),
        (PODS, "metadata.namespace==other", ""),
        ("/api/v1/secrets", "type=example.com/t", "s"),
        ("/api/v1/services", "spec.clusterIP!=None", "kubernetes"),
        ("/api/v1/services", "spec.type=ClusterIP", "kubernetes"),
        ("/api/v1/namespaces", "status.phase=Terminating", ""),
        ("/api/v1/namespaces", "name=default", "default"),
    ] {
        let list = server
            .get(&format!("{path}?fieldSelector={selector}"))
            .await
            .ok();
        assert_eq!(names(&list).join(" "), expected, "{path} {selector}");
    }
}
