//! `pods/ephemeralcontainers`: what kubectl debug sends, and what is refused. The words are upstream's.

use http::Method;
use kennel_server::request::User;
use serde_json::{Value, json};

use crate::fixture::{JSON_PATCH, MERGE, PODS, STRATEGIC, TestServer, pod, request};

const PATH: &str = "/api/v1/namespaces/default/pods/p/ephemeralcontainers";
const APPLY: &str = "application/apply-patch+yaml";

/// The strategic merge patch that kubectl debug sends.
fn added(container: &Value) -> Value {
    json!({"spec": {"ephemeralContainers": [container]}})
}

fn shell(name: &str) -> Value {
    json!({"name": name, "image": "busybox", "stdin": true, "tty": true,
        "targetContainerName": "c", "terminationMessagePolicy": "File", "resources": {}})
}

fn names(pod: &Value) -> Vec<&str> {
    let all = pod["spec"]["ephemeralContainers"].as_array().unwrap();
    all.iter().map(|c| c["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn containers_are_added_and_watchers_see_them() {
    let server = TestServer::new().await;
    let made = server.pod("p", "n").await;
    let version = made["metadata"]["resourceVersion"].as_str().unwrap();
    let mut watch = server
        .watch(&format!("{PODS}?resourceVersion={version}"))
        .await;
    let changed = server
        .patch(STRATEGIC, PATH, &added(&shell("a")))
        .await
        .ok();
    assert_eq!(changed["kind"], "Pod");
    assert_eq!(changed["metadata"]["generation"], 2);
    let container = &changed["spec"]["ephemeralContainers"][0];
    assert_eq!(container["imagePullPolicy"], "Always", "defaults are set");
    assert_eq!(container["terminationMessagePath"], "/dev/termination-log");
    let event = watch.next().await.unwrap();
    assert_eq!(event["type"], "MODIFIED");
    assert_eq!(names(&event["object"]), ["a"]);
    // A second one, by a patch and by a PUT of the whole pod.
    let changed = server
        .patch(STRATEGIC, PATH, &added(&shell("b")))
        .await
        .ok();
    let mut both = names(&changed);
    both.sort_unstable();
    assert_eq!(both, ["a", "b"]);
    let mut whole = server.get(PATH).await.ok();
    assert_eq!(whole, server.get(&format!("{PODS}/p")).await.ok());
    let list = whole["spec"]["ephemeralContainers"].as_array_mut().unwrap();
    list.push(shell("d"));
    assert_eq!(names(&server.put(PATH, &whole).await.ok()).len(), 3);
}

#[tokio::test]
async fn nothing_else_is_changed_through_it() {
    let server = TestServer::new().await;
    server.pod("p", "n").await;
    let mut patch = added(&shell("a"));
    patch["metadata"] =
        json!({"labels": {"x": "y"}, "annotations": {"x": "y"}, "finalizers": ["x/y"]});
    patch["spec"]["activeDeadlineSeconds"] = json!(5);
    patch["status"] = json!({"phase": "Failed"});
    let changed = server.patch(STRATEGIC, PATH, &patch).await.ok();
    assert_eq!(names(&changed), ["a"]);
    assert_eq!(changed["status"]["phase"], "Pending");
    assert_eq!(changed["spec"].get("activeDeadlineSeconds"), None);
    for field in ["labels", "annotations", "finalizers"] {
        assert_eq!(changed["metadata"].get(field), None, "{field}");
    }
    // And they are not changed through the pod itself, nor at its creation.
    let more = server
        .patch(STRATEGIC, &format!("{PODS}/p"), &added(&shell("b")))
        .await;
    let status = more.fails(422, "Invalid");
    let message = status["message"].as_str().unwrap();
    assert!(
        message.contains("pod updates may not change fields other than"),
        "{message}"
    );
    let mut new = pod("q");
    new["spec"]["ephemeralContainers"] = json!([{"name": "a", "image": "i:1"}]);
    let status = server.post(PODS, &new).await.fails(422, "Invalid");
    let message = status["message"].as_str().unwrap();
    let expected = "spec.ephemeralContainers: Forbidden: cannot be set on create";
    assert!(message.contains(expected), "{message}");
}

#[tokio::test]
async fn existing_ones_are_neither_changed_nor_removed() {
    let server = TestServer::new().await;
    server.pod("p", "n").await;
    server
        .patch(STRATEGIC, PATH, &added(&shell("a")))
        .await
        .ok();
    let prefix = "Pod \"p\" is invalid: spec.ephemeralContainers: Forbidden: existing ephemeral containers \"a\" may not be";
    let remove = json!([{"op": "remove", "path": "/spec/ephemeralContainers/0"}]);
    let status = server.patch(JSON_PATCH, PATH, &remove).await;
    let status = status.fails(422, "Invalid");
    assert_eq!(status["message"], format!("{prefix} removed\n"));
    let change = json!({"name": "a", "image": "other"});
    let status = server.patch(STRATEGIC, PATH, &added(&change)).await;
    let status = status.fails(422, "Invalid");
    let message = status["message"].as_str().unwrap();
    assert!(
        message.starts_with(&format!("{prefix} changed\n")),
        "{message}"
    );
    assert!(
        message.contains("- ephemeralContainers.image: \"busybox\""),
        "{message}"
    );
    let all = server
        .patch(MERGE, PATH, &json!({"spec": {"ephemeralContainers": null}}))
        .await;
    all.fails(422, "Invalid");
    assert_eq!(names(&server.get(PATH).await.ok()), ["a"]);
}

#[tokio::test]
async fn invalid_ones_get_upstreams_errors() {
    let server = TestServer::new().await;
    server.pod("p", "n").await;
    let at = "spec.ephemeralContainers[0]";
    let forbidden = "Forbidden: cannot be set for an Ephemeral Container";
    let with = |field: &str, value: Value| {
        let mut container = json!({"name": "a", "image": "i:1"});
        container[field] = value;
        container
    };
    for (container, expected) in [
        (
            with("targetContainerName", json!("nobody")),
            format!("{at}.targetContainerName: Not found: \"nobody\""),
        ),
        (
            json!({"name": "c", "image": "i:1"}),
            format!("{at}.name: Duplicate value: \"c\""),
        ),
        (
            json!({"name": "A_b", "image": "i:1"}),
            format!("{at}.name: Invalid value: \"A_b\": a lowercase RFC 1123 label"),
        ),
        (json!({"name": "a"}), format!("{at}.image: Required value")),
        (
            with("ports", json!([{"containerPort": 80}])),
            format!("{at}.ports: {forbidden}"),
        ),
        (
            with("livenessProbe", json!({"tcpSocket": {"port": 1}})),
            format!("{at}.livenessProbe: {forbidden}"),
        ),
        (
            with(
                "lifecycle",
                json!({"preStop": {"exec": {"command": ["a"]}}}),
            ),
            format!("{at}.lifecycle: {forbidden}"),
        ),
        (
            with("resources", json!({"limits": {"cpu": "1"}})),
            format!("{at}.resources: {forbidden}"),
        ),
        (
            with("restartPolicy", json!("Always")),
            format!("{at}.restartPolicy: {forbidden}"),
        ),
        (
            with("volumeMounts", json!([{"name": "v", "mountPath": "/v"}])),
            format!("{at}.volumeMounts[0].name: Not found: \"v\""),
        ),
    ] {
        let answer = server.patch(STRATEGIC, PATH, &added(&container)).await;
        let status = answer.fails(422, "Invalid");
        let message = status["message"].as_str().unwrap();
        assert!(message.contains(&expected), "no {expected:?} in {message}");
    }
    let twice = json!([{"op": "add", "path": "/spec/ephemeralContainers", "value": [
        {"name": "a", "image": "i:1"}, {"name": "a", "image": "i:1"}]}]);
    let status = server
        .patch(JSON_PATCH, PATH, &twice)
        .await
        .fails(422, "Invalid");
    let message = status["message"].as_str().unwrap();
    let expected = "spec.ephemeralContainers[1].name: Duplicate value: \"a\"";
    assert!(message.contains(expected), "{message}");
    let missing = PATH.replace("/p/", "/absent/");
    let answer = server.patch(STRATEGIC, &missing, &added(&shell("a"))).await;
    answer.says(404, "NotFound", "pods \"absent\" not found");
    let post = server.post(PATH, &pod("p")).await;
    post.fails(405, "MethodNotAllowed");
}

#[tokio::test]
async fn static_pods_refuse_them_and_finished_pods_warn() {
    let server = TestServer::new().await;
    let mut mirror = pod("p");
    mirror["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "x"});
    mirror["spec"]["nodeName"] = "n".into();
    server.post(PODS, &mirror).await.is(201);
    let answer = server.patch(STRATEGIC, PATH, &added(&shell("a"))).await;
    answer.says(
        422,
        "Invalid",
        "Pod \"p\" is invalid: []: Forbidden: static pods do not support ephemeral containers",
    );
    server.pod("done", "n").await;
    let path = format!("{PODS}/done");
    let phase = json!({"status": {"phase": "Succeeded"}});
    server
        .patch(MERGE, &format!("{path}/status"), &phase)
        .await
        .ok();
    let path = format!("{path}/ephemeralcontainers");
    let answer = server.patch(STRATEGIC, &path, &added(&shell("a"))).await;
    answer.ok();
    let [warning] = answer.warnings()[..] else {
        panic!("{:?}", answer.warnings());
    };
    let expected = "has finished (Succeeded): its ephemeral containers will not start";
    assert!(warning.contains(expected), "{warning}");
}

#[tokio::test]
async fn managers_own_them_by_subresource() {
    let server = TestServer::new().await;
    server.pod("p", "n").await;
    let by_kubectl = format!("{PATH}?fieldManager=kubectl-debug");
    let patched = server
        .patch(STRATEGIC, &by_kubectl, &added(&shell("a")))
        .await;
    let entry = |pod: &Value, manager: &str| {
        let all = pod["metadata"]["managedFields"].as_array().unwrap();
        let mut all = all.iter();
        all.find(|entry| entry["manager"] == manager).cloned()
    };
    let own = entry(&patched.ok(), "kubectl-debug").unwrap();
    assert_eq!(own["operation"], "Update");
    assert_eq!(own["subresource"], "ephemeralcontainers");
    let key = "k:{\"name\":\"a\"}";
    let owned = &own["fieldsV1"]["f:spec"]["f:ephemeralContainers"];
    assert!(owned[key]["f:image"].is_object(), "{own}");
    let config = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"ephemeralContainers": [{"name": "b", "image": "i:1"}]}});
    let applied = server
        .patch(APPLY, &format!("{PATH}?fieldManager=me"), &config)
        .await
        .ok();
    assert_eq!(names(&applied).len(), 2);
    let own = entry(&applied, "me").unwrap();
    assert_eq!(own["operation"], "Apply");
    assert_eq!(own["subresource"], "ephemeralcontainers");
    assert_eq!(
        own["fieldsV1"]["f:spec"],
        json!({"f:ephemeralContainers": {"k:{\"name\":\"b\"}": {".": {}, "f:image": {}, "f:name": {}}}})
    );
    // Whatever else a configuration has, it is not changed through this part, so nobody owns it.
    let mut whole = config.clone();
    whole["metadata"]["labels"] = json!({"x": "y"});
    whole["spec"]["containers"] = json!([{"name": "c", "image": "other"}]);
    whole["spec"]["activeDeadlineSeconds"] = json!(5);
    let unforced = format!("{PATH}?fieldManager=me");
    let applied = server.patch(APPLY, &unforced, &whole).await.ok();
    assert_eq!(applied["metadata"].get("labels"), None);
    let again = entry(&applied, "me").unwrap();
    assert_eq!(again["fieldsV1"], own["fieldsV1"]);
    let mut patch = added(&shell("e"));
    patch["metadata"] = json!({"annotations": {"x": "y"}});
    let by_other = format!("{PATH}?fieldManager=other");
    let patched = server.patch(STRATEGIC, &by_other, &patch).await.ok();
    let others = entry(&patched, "other").unwrap();
    assert_eq!(others["fieldsV1"].get("f:metadata"), None, "{others}");
    // To let go of one that nobody else owns would remove it.
    let less = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {}});
    let refused = server
        .patch(APPLY, &format!("{PATH}?fieldManager=me"), &less)
        .await;
    let status = refused.fails(422, "Invalid");
    let message = status["message"].as_str().unwrap();
    assert!(message.contains("\"b\" may not be removed"), "{message}");
}

#[tokio::test]
async fn pod_security_and_rbac_apply() {
    let server = TestServer::audited().await;
    server.pod("p", "n").await;
    let enforce =
        json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "baseline"}}});
    let namespace = "/api/v1/namespaces/default";
    server.patch(MERGE, namespace, &enforce).await.ok();
    let mut sysadmin = shell("a");
    sysadmin["securityContext"] = json!({"privileged": true});
    let refused = server.patch(STRATEGIC, PATH, &added(&sysadmin)).await;
    refused.says(
        403,
        "Forbidden",
        "pods \"p\" is forbidden: violates PodSecurity \"baseline:latest\": privileged \
         (container \"a\" must not set securityContext.privileged=true)",
    );
    // Upstream leaves it out of the role on purpose: administrators grant it.
    let group = "rbac.authorization.k8s.io";
    let roles = format!("/apis/{group}/v1/clusterroles");
    let bindings = format!("/apis/{group}/v1/namespaces/default/rolebindings");
    let binding = |role: &str| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": role},
            "subjects": [{"kind": "User", "name": "jane", "apiGroup": group}],
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role}})
    };
    server.post(&bindings, &binding("edit")).await.is(201);
    let mut patch = request(Method::PATCH, PATH, Some(&added(&shell("a"))));
    let kind = STRATEGIC.parse().unwrap();
    patch.headers_mut().insert(http::header::CONTENT_TYPE, kind);
    let jane = User::authenticated("jane", Vec::new());
    let refused = server.send_as(patch.clone(), jane.clone()).await;
    let status = refused.fails(403, "Forbidden");
    let message = status["message"].as_str().unwrap();
    assert!(message.contains("pods/ephemeralcontainers"), "{message}");
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "debug"},
        "rules": [{"apiGroups": [""], "resources": ["pods/ephemeralcontainers"], "verbs": ["patch"]}]});
    server.post(&roles, &role).await.is(201);
    server.post(&bindings, &binding("debug")).await.is(201);
    server.send_as(patch, jane).await.ok();
    let log = server.into_audit_log().await;
    let recorded = log
        .iter()
        .filter(|entry| entry["objectRef"]["subresource"] == "ephemeralcontainers");
    let codes: Vec<&Value> = recorded
        .map(|entry| &entry["responseStatus"]["code"])
        .collect();
    assert_eq!(codes, [&json!(403), &json!(403), &json!(200)]);
}
