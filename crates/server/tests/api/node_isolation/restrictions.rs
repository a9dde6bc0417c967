//! What a node may not do with its own objects, with upstream's wording.

use serde_json::{Value, json};

use super::fixture::{Fixture, LEASES, REQUESTS, core, event, lease, mirror, signing};

/// A request of node `a`, and the expected refusal.
async fn check(fixture: &Fixture, method: &str, path: &str, body: &Value, words: &str) {
    let answer = fixture.send("a", method, path, Some(body)).await;
    let status = answer.fails(403, "Forbidden");
    let message = status["message"].as_str().unwrap();
    let (_, why) = message.split_once(" is forbidden: ").expect(message);
    assert_eq!(why, words, "{method} {path} {body}");
}

#[tokio::test]
async fn a_node_cannot_attract_pods() {
    let fixture = Fixture::new().await;
    let own = "/api/v1/nodes/a";
    let label = |key: &str| json!({"metadata": {"labels": {key: "x"}}});
    for path in [own, "/api/v1/nodes/a/status"] {
        for key in [
            "node-restriction.kubernetes.io/pci",
            "node-role.kubernetes.io/master",
            "k8s.io/x",
        ] {
            let words = format!("is not allowed to modify labels: {key}");
            check(&fixture, "PATCH", path, &label(key), &words).await;
        }
        let taints = json!({"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}});
        let words = "node \"a\" is not allowed to modify taints";
        check(&fixture, "PATCH", path, &taints, words).await;
        let owners = json!({"metadata": {"ownerReferences": [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "u"}]}});
        let words = "node \"a\" is not allowed to modify ownerReferences";
        check(&fixture, "PATCH", path, &owners, words).await;
    }
    // It may not remove labels that others have set.
    let marked = label("node-restriction.kubernetes.io/pci");
    fixture
        .server
        .patch(crate::fixture::MERGE, own, &marked)
        .await
        .ok();
    let none = json!({"metadata": {"labels": {"node-restriction.kubernetes.io/pci": null}}});
    let words = "is not allowed to modify labels: node-restriction.kubernetes.io/pci";
    check(&fixture, "PATCH", own, &none, words).await;
    let fine = json!({"metadata": {"labels": {"node.kubernetes.io/x": "y"}}});
    fixture.send("a", "PATCH", own, Some(&fine)).await.ok();
}

#[tokio::test]
async fn a_node_registers_only_itself_and_without_protected_labels() {
    let fixture = Fixture::new().await;
    fixture.server.delete("/api/v1/nodes/a").await.ok();
    let node = json!({"metadata": {"name": "a", "labels": {
        "node-role.kubernetes.io/control-plane": "", "kubernetes.io/os": "linux",
        "example.node-restriction.kubernetes.io/x": "y"}}});
    check(
        &fixture,
        "POST",
        "/api/v1/nodes",
        &node,
        "node \"a\" is not allowed to set the following labels: \
         example.node-restriction.kubernetes.io/x, node-role.kubernetes.io/control-plane",
    )
    .await;
    let other = json!({"metadata": {"name": "z"}});
    let words = "node \"a\" is not allowed to modify node \"z\"";
    check(&fixture, "POST", "/api/v1/nodes", &other, words).await;
    let label = json!({"metadata": {"labels": {"x": "y"}}});
    let words = "node \"a\" is not allowed to modify node \"b\"";
    check(&fixture, "PATCH", "/api/v1/nodes/b", &label, words).await;
    check(&fixture, "PATCH", "/api/v1/nodes/b/status", &label, words).await;
}

/// Other nodes route the range to it, the DNS server resolves any name for its addresses, and a server on a loopback address
/// admits them.
#[tokio::test]
async fn a_node_does_not_choose_the_range_of_its_pods() {
    let fixture = Fixture::new().await;
    let own = "/api/v1/nodes/a";
    for ranges in [
        json!({"podCIDR": "10.128.7.0/24"}),
        json!({"podCIDRs": ["0.0.0.0/0"]}),
    ] {
        for path in [own, "/api/v1/nodes/a/status"] {
            let words = "node \"a\" is not allowed to modify podCIDRs";
            check(&fixture, "PATCH", path, &json!({"spec": ranges}), words).await;
        }
        fixture.server.delete(own).await.ok();
        let node = json!({"metadata": {"name": "a"}, "spec": ranges});
        let words = "node \"a\" is not allowed to set podCIDRs";
        check(&fixture, "POST", "/api/v1/nodes", &node, words).await;
        let bare = json!({"metadata": {"name": "a"}});
        fixture
            .send("a", "POST", "/api/v1/nodes", Some(&bare))
            .await
            .is(201);
    }
    // What the node IPAM controller has written stays, and the node goes on.
    let assigned = json!({"spec": {"podCIDR": "10.128.7.0/24", "podCIDRs": ["10.128.7.0/24"]}});
    let merge = crate::fixture::MERGE;
    fixture.server.patch(merge, own, &assigned).await.ok();
    let fine = json!({"metadata": {"labels": {"node.kubernetes.io/x": "y"}}});
    fixture.send("a", "PATCH", own, Some(&fine)).await.ok();
}

/// A mirror pod with one thing changed.
fn changed(uid: &Value, change: impl FnOnce(&mut Value)) -> Value {
    let mut pod = mirror("a", uid);
    change(&mut pod);
    pod
}

#[tokio::test]
async fn mirror_pods_are_for_itself_and_name_nothing() {
    let fixture = Fixture::new().await;
    let uid = fixture.server.get("/api/v1/nodes/a").await.ok()["metadata"]["uid"].clone();
    let owner = |field: &'static str, value: Value| {
        changed(&uid, |pod| {
            pod["metadata"]["ownerReferences"][0][field] = value;
        })
    };
    let spec = |field: &'static str, value: Value| changed(&uid, |pod| pod["spec"][field] = value);
    let volume = |source: Value| {
        let mut volume = source;
        volume["name"] = "v".into();
        spec("volumes", json!([volume]))
    };
    let references = |what: &str| format!("node \"a\" can not create pods that reference {what}");
    let to_itself = "node \"a\" can only create pods with an owner reference set to itself";
    for (pod, words) in [
        (
            changed(&uid, |pod| pod["metadata"]["annotations"] = json!({})),
            "pod does not have \"kubernetes.io/config.mirror\" annotation, node \"a\" can only create \
             mirror pods".to_owned(),
        ),
        (
            spec("nodeName", "b".into()),
            "node \"a\" can only create pods with spec.nodeName set to itself".to_owned(),
        ),
        (
            changed(&uid, |pod| pod["metadata"]["ownerReferences"] = json!([])),
            to_itself.to_owned(),
        ),
        (owner("name", "b".into()), to_itself.to_owned()),
        (owner("kind", "Pod".into()), to_itself.to_owned()),
        (
            owner("controller", false.into()),
            "node \"a\" can only create pods with a controller owner reference set to itself".to_owned(),
        ),
        (
            owner("blockOwnerDeletion", true.into()),
            "node \"a\" must not set blockOwnerDeletion on an owner reference".to_owned(),
        ),
        (
            owner("uid", "other".into()),
            format!("node a UID mismatch: expected other got {}", uid.as_str().unwrap()),
        ),
        (spec("serviceAccountName", "default".into()), references("serviceaccounts")),
        (spec("imagePullSecrets", json!([{"name": "s"}])), references("secrets")),
        (volume(json!({"secret": {"secretName": "s"}})), references("secrets")),
        (volume(json!({"configMap": {"name": "m"}})), references("configmaps")),
        (
            volume(json!({"persistentVolumeClaim": {"claimName": "c"}})),
            references("persistentvolumeclaims"),
        ),
        (volume(json!({"csi": {"driver": "d"}})), references("csidrivers (via CSI volumes)")),
        (
            volume(json!({"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}})),
            references("serviceaccounts (via projected volumes)"),
        ),
    ] {
        check(&fixture, "POST", &core("pods"), &pod, &words).await;
    }
}

#[tokio::test]
async fn pods_of_others_are_left_alone() {
    let fixture = Fixture::new().await;
    let pod = format!("{}/pod-b", core("pods"));
    let running = json!({"status": {"phase": "Running"}});
    let words = "node \"a\" can only update pod status for pods with spec.nodeName set to itself";
    check(&fixture, "PATCH", &format!("{pod}/status"), &running, words).await;
    let words = "node \"a\" can only delete pods with spec.nodeName set to itself";
    check(&fixture, "DELETE", &pod, &json!({}), words).await;
    let words = "node a can only evict pods with spec.nodeName set to itself";
    let eviction = json!({"metadata": {"name": "pod-b"}});
    check(
        &fixture,
        "POST",
        &format!("{pod}/eviction"),
        &eviction,
        words,
    )
    .await;
    let label = json!({"metadata": {"labels": {"app": "another"}}});
    let words = "node \"a\" cannot update labels through pod status";
    let own = format!("{}/pod-a/status", core("pods"));
    check(&fixture, "PATCH", &own, &label, words).await;
}

#[tokio::test]
async fn tokens_are_for_its_own_pods() {
    let fixture = Fixture::new().await;
    let server = &fixture.server;
    // A pod of the same account on the other node.
    let mut twin = super::fixture::pod("a");
    twin["metadata"]["name"] = "twin".into();
    twin["spec"]["nodeName"] = "b".into();
    let twin = server.post(&core("pods"), &twin).await.is(201);
    let own = server.get(&format!("{}/pod-a", core("pods"))).await.ok();
    let path = format!("{}/account-a/token", core("serviceaccounts"));
    let ask = |kind: &str, name: &str, uid: &Value| json!({"spec": {"boundObjectRef": {"apiVersion": "v1", "kind": kind, "name": name, "uid": uid}}});
    let (own_uid, twin_uid) = (&own["metadata"]["uid"], &twin["metadata"]["uid"]);
    let unbound = "node requested token not bound to a pod";
    for (request, words) in [
        (json!({}), unbound),
        (ask("Node", "a", &json!("u")), unbound),
        (
            ask("Pod", "pod-a", &Value::Null),
            "node requested token with a pod binding without a uid",
        ),
        (
            ask("Pod", "pod-a", &json!("u")),
            "the UID in the bound object reference (u) does not match the UID in record. The object \
             might have been deleted and then recreated",
        ),
        (
            ask("Pod", "twin", twin_uid),
            "node requested token bound to a pod scheduled on a different node",
        ),
    ] {
        check(&fixture, "POST", &path, &request, words).await;
    }
    let fine = ask("Pod", "pod-a", own_uid);
    fixture.send("a", "POST", &path, Some(&fine)).await.is(201);
    let mut elsewhere = fine.clone();
    elsewhere["spec"]["audiences"] = json!(["vault"]);
    let words = "audience \"vault\" not found in pod spec volume, system:node:a is not authorized to \
                 request tokens for this audience";
    check(&fixture, "POST", &path, &elsewhere, words).await;
    elsewhere["spec"]["audiences"] = json!(["vault", "bank"]);
    let words = "node may only request 0 or 1 audiences";
    check(&fixture, "POST", &path, &elsewhere, words).await;
}

#[tokio::test]
async fn what_it_creates_has_its_own_name() {
    let fixture = Fixture::new().await;
    let words = "can only access node lease with the same name as the requesting node";
    check(&fixture, "POST", LEASES, &lease("z"), words).await;
    let words = "can only create a node CSR with CN=system:node:a";
    check(&fixture, "POST", REQUESTS, &signing("z"), words).await;
    let words =
        "node \"a\" can only write events with source.host or reportingInstance set to itself";
    check(&fixture, "POST", &core("events"), &event("z"), words).await;
}

#[tokio::test]
async fn refusals_say_why() {
    let fixture = Fixture::new().await;
    let says = |why: &str, what: &str| {
        format!("User \"system:node:a\" cannot {what} in the namespace \"default\": {why}")
    };
    let secret = format!("{}/secret-b", core("secrets"));
    let words = says(
        "no relationship found between node 'a' and this object",
        "get resource \"secrets\" in API group \"\"",
    );
    check(&fixture, "GET", &secret, &json!({}), &words).await;
    let words = says(
        "can only list/watch pods with spec.nodeName field selector",
        "list resource \"pods\" in API group \"\"",
    );
    check(&fixture, "GET", &core("pods"), &json!({}), &words).await;
}
