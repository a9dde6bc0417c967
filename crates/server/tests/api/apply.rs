//! Server-side apply and managed fields. `apply_input` has what is refused.

use http::{Method, header};
use kennel_server::request::User;
use serde_json::{Value, json};

use crate::fixture::{DAEMONSETS, MAPS, MERGE, PODS, TestServer, daemonset, pod, request};

pub(crate) const APPLY: &str = "application/apply-patch+yaml";

pub(crate) fn config_map(data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data})
}

pub(crate) fn path(manager: &str) -> String {
    format!("{MAPS}/a?fieldManager={manager}")
}

/// `manager operation subresource` of each entry, with its fields.
fn managers(object: &Value) -> Vec<(String, Value)> {
    let entries = object["metadata"]["managedFields"].as_array();
    let entries = entries.into_iter().flatten().map(|entry| {
        let text = |name: &str| entry[name].as_str().unwrap_or_default();
        let who = [text("manager"), text("operation"), text("subresource")].join(" ");
        (who.trim().to_owned(), entry["fieldsV1"].clone())
    });
    entries.collect()
}

fn names(object: &Value) -> Vec<String> {
    managers(object).into_iter().map(|(name, _)| name).collect()
}

#[tokio::test]
async fn an_apply_creates_and_changes_an_object() {
    let server = TestServer::new().await;
    let made = server
        .patch(APPLY, &path("alice"), &config_map(&json!({"k": "1"})))
        .await
        .is(201);
    assert_eq!(made["data"]["k"], "1");
    assert_eq!(
        managers(&made),
        [("alice Apply".to_owned(), json!({"f:data": {"f:k": {}}}))]
    );
    let again = server
        .patch(APPLY, &path("alice"), &config_map(&json!({"k": "1"})))
        .await
        .ok();
    assert_eq!(again, made, "an apply of the same writes nothing");
    let changed = server
        .patch(APPLY, &path("alice"), &config_map(&json!({"l": "2"})))
        .await
        .ok();
    assert_eq!(changed["data"], json!({"l": "2"}));
}

#[tokio::test]
async fn conflicts_name_managers_and_fields() {
    let server = TestServer::new().await;
    server
        .patch(
            APPLY,
            &path("alice"),
            &config_map(&json!({"k": "1", "l": "1"})),
        )
        .await
        .is(201);
    let update = json!({"data": {"l": "2"}});
    server.patch(MERGE, &path("bob"), &update).await.ok();
    let body = config_map(&json!({"k": "3", "l": "3"}));
    let status = server
        .patch(APPLY, &path("carol"), &body)
        .await
        .fails(409, "Conflict");
    assert_eq!(
        status["message"],
        "Apply failed with 2 conflicts: conflicts with \"alice\":\n- .data.k\nconflicts with \"bob\" using v1:\n- .data.l"
    );
    assert_eq!(
        status["details"]["causes"],
        json!([
            {"reason": "FieldManagerConflict", "message": "conflict with \"alice\"", "field": ".data.k"},
            {"reason": "FieldManagerConflict", "message": "conflict with \"bob\" using v1", "field": ".data.l"},
        ])
    );
    let forced = format!("{}&force=true", path("carol"));
    let taken = server.patch(APPLY, &forced, &body).await.ok();
    assert_eq!(names(&taken), ["carol Apply"]);
}

#[tokio::test]
async fn every_verb_has_its_manager() {
    let server = TestServer::new().await;
    let mut create = request(Method::POST, DAEMONSETS, Some(&daemonset("d")));
    let agent = "kubectl/v1.36.0 (linux/amd64)".parse().unwrap();
    create.headers_mut().insert(header::USER_AGENT, agent);
    let made = server.send(create).await.is(201);
    assert_eq!(names(&made), ["kubectl Update"]);
    let (_, fields) = managers(&made).remove(0);
    let annotations = &fields["f:metadata"]["f:annotations"];
    assert_eq!(
        annotations["f:deprecated.daemonset.template.generation"],
        json!({}),
        "{fields}"
    );
    assert!(fields.get("f:status").is_none(), "{fields}");
    let status = json!({"status": {"numberReady": 1}});
    let path = format!("{DAEMONSETS}/d");
    let with_status = format!("{path}/status?fieldManager=controller");
    let ready = server.patch(MERGE, &with_status, &status).await.ok();
    // Listed by the second in which they wrote.
    let mut wrote = names(&ready);
    wrote.sort();
    assert_eq!(wrote, ["controller Update status", "kubectl Update"]);
    let mut body = ready.clone();
    body["spec"]["minReadySeconds"] = 5.into();
    let put = server
        .put(&format!("{path}?fieldManager=putter"), &body)
        .await
        .ok();
    let entries = managers(&put);
    let putter = entries
        .iter()
        .find(|(name, _)| name == "putter Update")
        .unwrap();
    assert_eq!(putter.1, json!({"f:spec": {"f:minReadySeconds": {}}}));
}

#[tokio::test]
async fn managers_are_reset_by_one_empty_entry() {
    let server = TestServer::new().await;
    server.map("a", &json!({"k": "1"})).await;
    let reset = json!({"metadata": {"managedFields": [{}]}});
    let cleared = server.patch(MERGE, &path("m"), &reset).await.ok();
    assert!(
        cleared["metadata"].get("managedFields").is_none(),
        "{cleared}"
    );
    let changed = json!({"data": {"k": "2"}});
    let changed = server.patch(MERGE, &path("m"), &changed).await.ok();
    assert!(names(&changed).is_empty());
    server
        .patch(APPLY, &path("m"), &config_map(&json!({"l": "1"})))
        .await
        .ok();
    let object = server.get(&format!("{MAPS}/a")).await.ok();
    assert_eq!(names(&object), ["m Apply", "before-first-apply Update"]);
}

#[tokio::test]
async fn a_status_is_applied_but_not_created() {
    let server = TestServer::new().await;
    let body = json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "d"},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    });
    let path = format!("{DAEMONSETS}/d/status?fieldManager=m");
    server
        .patch(APPLY, &path, &body)
        .await
        .fails(404, "NotFound");
    server.post(DAEMONSETS, &daemonset("d")).await.is(201);
    let applied = server.patch(APPLY, &path, &body).await.ok();
    assert_eq!(applied["status"]["conditions"][0]["type"], "Ready");
    let (name, fields) = managers(&applied).remove(0);
    assert_eq!(name, "m Apply status");
    assert_eq!(
        fields["f:status"]["f:conditions"]["k:{\"type\":\"Ready\"}"],
        json!({".": {}, "f:status": {}, "f:type": {}})
    );
}

#[tokio::test]
async fn a_dry_run_stores_nothing() {
    let server = TestServer::new().await;
    let dry = format!("{}&dryRun=All", path("m"));
    server
        .patch(APPLY, &dry, &config_map(&json!({"k": "1"})))
        .await
        .is(201);
    server
        .get(&format!("{MAPS}/a"))
        .await
        .fails(404, "NotFound");
}

#[tokio::test]
async fn a_dry_run_of_a_change_answers_with_the_change_and_stores_nothing() {
    let server = TestServer::new().await;
    let first = config_map(&json!({"k": "1", "old": "1"}));
    server.patch(APPLY, &path("m"), &first).await.is(201);
    let before = server.get(&format!("{MAPS}/a")).await.ok();
    let dry = format!("{}&dryRun=All", path("m"));
    let changed = config_map(&json!({"k": "2"}));
    let answer = server.patch(APPLY, &dry, &changed).await.ok();
    // What was applied before and no longer is goes, as it would.
    assert_eq!(answer["data"], json!({"k": "2"}));
    assert_eq!(managers(&answer)[0].1, json!({"f:data": {"f:k": {}}}));
    let versions = ["resourceVersion", "uid", "creationTimestamp"];
    for name in versions {
        assert_eq!(answer["metadata"][name], before["metadata"][name], "{name}");
    }
    assert_eq!(server.get(&format!("{MAPS}/a")).await.ok(), before);
    // Conflicts are found, too, and force overcomes them.
    let others = format!("{}&dryRun=All", path("other"));
    let refused = server.patch(APPLY, &others, &changed).await;
    refused.fails(409, "Conflict");
    let forced = format!("{others}&force=true");
    let forced = server.patch(APPLY, &forced, &changed).await.ok();
    assert_eq!(names(&forced), ["m Apply", "other Apply"]);
    assert_eq!(server.get(&format!("{MAPS}/a")).await.ok(), before);
}

/// The two versions of a budget have the same fields: an owner of one of them owns those of the other.
#[tokio::test]
async fn managers_meet_across_the_versions_of_a_kind() {
    const BUDGETS: &str = "/apis/policy/VERSION/namespaces/default/poddisruptionbudgets/b";
    let server = TestServer::new().await;
    let budget = |version: &str, spec: &Value| {
        json!({"apiVersion": format!("policy/{version}"), "kind": "PodDisruptionBudget",
            "metadata": {"name": "b"}, "spec": spec})
    };
    let path = |version: &str, manager: &str| {
        let path = BUDGETS.replace("VERSION", version);
        format!("{path}?fieldManager={manager}")
    };
    let selector = json!({"matchLabels": {"app": "a"}});
    let old = json!({"minAvailable": 1, "selector": selector, "unhealthyPodEvictionPolicy": "AlwaysAllow"});
    let old = budget("v1beta1", &old);
    server
        .patch(APPLY, &path("v1beta1", "alice"), &old)
        .await
        .is(201);
    let other = budget("v1", &json!({"minAvailable": 2, "selector": selector}));
    server.patch(APPLY, &path("v1", "bob"), &other).await.says(
        409,
        "Conflict",
        "Apply failed with 1 conflict: conflict with \"alice\": .spec.minAvailable",
    );
    // Alice moves to the new version and lets go of a field.
    let new = budget("v1", &json!({"minAvailable": 1, "selector": selector}));
    let moved = server.patch(APPLY, &path("v1", "alice"), &new).await.ok();
    assert_eq!(moved["spec"].get("unhealthyPodEvictionPolicy"), None);
    let entries = moved["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(
        (entries.len(), &entries[0]["apiVersion"]),
        (1, &json!("policy/v1"))
    );
    // An update through the old version takes what it changes.
    let patch = json!({"spec": {"minAvailable": 3}});
    let updated = server.patch(MERGE, &path("v1beta1", "carol"), &patch).await;
    let updated = managers(&updated.ok());
    assert_eq!(updated[0].0, "alice Apply");
    assert_eq!(updated[0].1, json!({"f:spec": {"f:selector": {}}}));
    assert_eq!(updated[1].1, json!({"f:spec": {"f:minAvailable": {}}}));
}

#[tokio::test]
async fn an_apply_that_creates_needs_the_right_to_create() {
    let server = TestServer::new().await;
    let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    let role = json!({
        "metadata": {"name": "patcher"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["patch"]}],
    });
    server.post(&format!("{rbac}/roles"), &role).await.is(201);
    let binding = json!({
        "metadata": {"name": "patcher"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "patcher"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "u"}],
    });
    server
        .post(&format!("{rbac}/rolebindings"), &binding)
        .await
        .is(201);
    let mut apply = request(Method::PATCH, &path("m"), Some(&config_map(&json!({}))));
    apply
        .headers_mut()
        .insert(header::CONTENT_TYPE, APPLY.parse().unwrap());
    let refused = server
        .send_as(apply, User::authenticated("u", Vec::new()))
        .await;
    refused.fails(403, "Forbidden");
}

#[tokio::test]
async fn an_apply_with_a_version_or_a_uid_is_conditional() {
    let server = TestServer::new().await;
    let mut body = config_map(&json!({"k": "1"}));
    body["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000".into();
    server.patch(APPLY, &path("m"), &body).await.says(
        409,
        "Conflict",
        "Operation cannot be fulfilled on configmaps \"a\": uid mismatch: the provided object specified uid 00000000-0000-0000-0000-000000000000, and no existing object was found",
    );
    server.map("a", &json!({})).await;
    let mut body = config_map(&json!({"k": "1"}));
    body["metadata"]["resourceVersion"] = "1".into();
    server
        .patch(APPLY, &path("m"), &body)
        .await
        .fails(409, "Conflict");
}

#[tokio::test]
async fn a_bound_pod_keeps_its_managers() {
    let server = TestServer::new().await;
    server
        .post(&format!("{PODS}?fieldManager=creator"), &pod("p"))
        .await
        .is(201);
    let binding = json!({"metadata": {"name": "p"}, "target": {"name": "n"}});
    server
        .post(&format!("{PODS}/p/binding"), &binding)
        .await
        .is(201);
    let bound = server.get(&format!("{PODS}/p")).await.ok();
    assert_eq!(bound["spec"]["nodeName"], "n");
    assert_eq!(names(&bound), ["creator Update"]);
    let (_, fields) = managers(&bound).remove(0);
    let spec = &fields["f:spec"];
    assert!(spec.get("f:containers").is_some(), "{fields}");
    // Nobody owns what binding and admission add.
    for field in ["f:nodeName", "f:serviceAccountName", "f:priority"] {
        assert!(spec.get(field).is_none(), "{field} in {fields}");
    }
    let status = json!({"status": {"phase": "Running", "podIPs": [{"ip": "10.0.0.1"}]}});
    let path = format!("{PODS}/p/status?fieldManager=kubelet");
    server.patch(MERGE, &path, &status).await.ok();
    let deleted = server.delete(&format!("{PODS}/p")).await.ok();
    assert!(deleted["metadata"].get("deletionTimestamp").is_some());
    let entries = managers(&server.get(&format!("{PODS}/p")).await.ok());
    assert_eq!(entries[0], ("creator Update".to_owned(), fields));
    assert_eq!(entries[1].0, "kubelet Update status");
    assert!(entries[1].1["f:status"].get("f:phase").is_some());
    assert!(entries[1].1.get("f:metadata").is_none(), "{entries:?}");
}

#[tokio::test]
async fn clients_may_leave_managed_fields_out() {
    let server = TestServer::new().await;
    server.map("a", &json!({"k": "1"})).await;
    for path in [format!("{MAPS}/a"), MAPS.to_owned()] {
        let mut get = request(Method::GET, &path, None);
        assert!(server.send(get).await.text().contains("managedFields"));
        get = request(Method::GET, &path, None);
        let omit = "omit".parse().unwrap();
        get.headers_mut().insert("kennel-managed-fields", omit);
        assert!(!server.send(get).await.text().contains("managedFields"));
    }
}
