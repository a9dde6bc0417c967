//! Pod Security admission: what the labels of a namespace refuse, warn about and record. The words are upstream's.

use http::Method;
use kennel_server::api::Exemptions;
use kennel_server::request::User;
use serde_json::{Value, json};

use crate::fixture::{
    DAEMONSETS, MERGE, NAMESPACES, PODS, STRATEGIC, TestServer, daemonset, pod, request,
};

const DEFAULT: &str = "/api/v1/namespaces/default";

fn labels(labels: &[(&str, &str)]) -> Value {
    let mut tree = json!({});
    for (name, value) in labels {
        tree[format!("pod-security.kubernetes.io/{name}")] = (*value).into();
    }
    tree
}

async fn label(server: &TestServer, set: &[(&str, &str)]) -> Vec<String> {
    let patch = json!({"metadata": {"labels": labels(set)}});
    let answer = server.patch(MERGE, DEFAULT, &patch).await;
    answer.ok();
    answer.warnings().into_iter().map(str::to_owned).collect()
}

fn privileged(name: &str) -> Value {
    let mut body = pod(name);
    body["spec"]["containers"][0]["securityContext"] = json!({"privileged": true});
    body
}

const PRIVILEGED: &str =
    "privileged (container \"c\" must not set securityContext.privileged=true)";

#[tokio::test]
async fn enforce_refuses_pods_and_labels_say_which() {
    let server = TestServer::new().await;
    server.post(PODS, &privileged("before")).await.is(201);
    label(
        &server,
        &[("enforce", "baseline"), ("enforce-version", "v1.30")],
    )
    .await;
    let words =
        format!("pods \"p\" is forbidden: violates PodSecurity \"baseline:v1.30\": {PRIVILEGED}");
    let status = server
        .post(PODS, &privileged("p"))
        .await
        .says(403, "Forbidden", &words);
    assert_eq!(status["details"], json!({"name": "p", "kind": "pods"}));
    server.post(PODS, &pod("plain")).await.is(201);
    // Errors of validation come first.
    let mut wrong = privileged("p");
    wrong["spec"]["restartPolicy"] = "Sometimes".into();
    server.post(PODS, &wrong).await.fails(422, "Invalid");
}

#[tokio::test]
async fn an_update_is_checked_if_it_changes_an_image() {
    let server = TestServer::new().await;
    server.post(PODS, &privileged("p")).await.is(201);
    label(&server, &[("enforce", "baseline")]).await;
    let path = format!("{PODS}/p");
    let note = json!({"metadata": {"annotations": {"a": "b"}}});
    server.patch(MERGE, &path, &note).await.ok();
    let image = json!({"spec": {"containers": [{"name": "c", "image": "i:2"}]}});
    server
        .patch(STRATEGIC, &path, &image)
        .await
        .fails(403, "Forbidden");
    let status = json!({"status": {"message": "m"}});
    server
        .patch(MERGE, &format!("{path}/status"), &status)
        .await
        .ok();
}

#[tokio::test]
async fn templates_are_warned_about_and_not_refused() {
    let server = TestServer::new().await;
    label(&server, &[("enforce", "baseline"), ("warn", "restricted")]).await;
    let mut set = daemonset("d");
    set["spec"]["template"]["spec"]["hostNetwork"] = true.into();
    let made = server.post(DAEMONSETS, &set).await;
    made.is(201);
    let [warning] = made.warnings()[..] else {
        panic!("{:?}", made.warnings());
    };
    let start = "299 - \"would violate PodSecurity \\\"restricted:latest\\\": host namespaces (hostNetwork=true), \
        allowPrivilegeEscalation != false (container \\\"c\\\" must set";
    assert!(warning.starts_with(start), "{warning}");
    // The level of warnings follows the enforced one, for pods and templates.
    label(&server, &[("warn", "privileged")]).await;
    let changed = json!({"spec": {"template": {"metadata": {"labels": {"a": "b"}}}}});
    let path = format!("{DAEMONSETS}/d");
    assert_eq!(
        server.patch(MERGE, &path, &changed).await.warnings(),
        [] as [&str; 0]
    );
}

#[tokio::test]
async fn a_stricter_level_warns_about_existing_pods() {
    let server = TestServer::new().await;
    for name in ["b", "a", "c"] {
        server.post(PODS, &privileged(name)).await.is(201);
    }
    let mut host = pod("host");
    host["spec"]["hostPID"] = true.into();
    server.post(PODS, &host).await.is(201);
    let warnings = label(&server, &[("enforce", "baseline")]).await;
    assert_eq!(
        warnings,
        [
            "299 - \"existing pods in namespace \\\"default\\\" violate the new PodSecurity enforce level \\\"baseline:latest\\\"\"",
            "299 - \"a (and 2 other pods): privileged\"",
            "299 - \"host: host namespaces\"",
        ]
    );
    assert_eq!(
        label(&server, &[("enforce", "baseline")]).await,
        [] as [&str; 0]
    );
    assert_eq!(
        label(&server, &[("enforce", "privileged")]).await,
        [] as [&str; 0]
    );
}

#[tokio::test]
async fn wrong_labels_are_refused() {
    let server = TestServer::new().await;
    let space = json!({"metadata": {"name": "s", "labels": labels(&[("enforce", "strict"), ("warn-version", "1.30")])}});
    let words = "Namespace \"s\" is invalid: [metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: \
        \"strict\": must be one of privileged, baseline, restricted, \
        metadata.labels[pod-security.kubernetes.io/warn-version]: Invalid value: \"1.30\": must be \"latest\" or \"v1.x\"]";
    server
        .post(NAMESPACES, &space)
        .await
        .says(422, "Invalid", words);
}

#[tokio::test]
async fn the_audit_log_has_violations_and_the_enforced_policy() {
    let server = TestServer::audited().await;
    label(
        &server,
        &[
            ("enforce", "baseline"),
            ("audit", "restricted"),
            ("warn", "privileged"),
        ],
    )
    .await;
    server.post(PODS, &privileged("refused")).await.is(403);
    server.post(DAEMONSETS, &daemonset("d")).await.is(201);
    let lines = server.into_audit_log().await;
    let [_, refused, template] = &lines[..] else {
        panic!("{lines:?}");
    };
    let annotation = |line: &Value, name: &str| {
        let key = format!("pod-security.kubernetes.io/{name}");
        line["annotations"][key]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    assert_eq!(annotation(refused, "enforce-policy"), "baseline:latest");
    let start = format!("would violate PodSecurity \"restricted:latest\": {PRIVILEGED}, ");
    let found = annotation(refused, "audit-violations");
    assert!(found.starts_with(&start), "{found}");
    assert_eq!(annotation(template, "enforce-policy"), "");
    assert!(!annotation(template, "audit-violations").is_empty());
}

#[tokio::test]
async fn namespaces_users_and_runtime_classes_can_be_exempt() {
    let names = |name: &str| vec![name.to_owned()];
    let server = TestServer::exempting(Exemptions {
        namespaces: names("free"),
        users: names("installer"),
        runtime_classes: names("sandboxed"),
    })
    .await;
    label(&server, &[("enforce", "restricted")]).await;
    let class = json!({"metadata": {"name": "sandboxed"}, "handler": "h"});
    let classes = "/apis/node.k8s.io/v1/runtimeclasses";
    server.post(classes, &class).await.is(201);
    server.post(PODS, &privileged("p")).await.is(403);
    let installer = User::master("installer");
    let asked = request(Method::POST, PODS, Some(&privileged("user")));
    server.send_as(asked, installer).await.is(201);
    let mut sandboxed = privileged("sandboxed");
    sandboxed["spec"]["runtimeClassName"] = "sandboxed".into();
    server.post(PODS, &sandboxed).await.is(201);
    let free = json!({"metadata": {"name": "free", "labels": labels(&[("enforce", "restricted"), ("audit", "baseline")])}});
    let made = server.post(NAMESPACES, &free).await;
    made.is(201);
    // The level of warnings follows the enforced one, and no label sets it.
    let words = "299 - \"namespace \\\"free\\\" is exempt from Pod Security, and the policy \
        (enforce=restricted:latest, audit=baseline:latest) will be ignored\"";
    assert_eq!(made.warnings(), [words]);
    let account = json!({"metadata": {"name": "default"}});
    server
        .post("/api/v1/namespaces/free/serviceaccounts", &account)
        .await;
    server
        .post("/api/v1/namespaces/free/pods", &privileged("p"))
        .await
        .is(201);
}
