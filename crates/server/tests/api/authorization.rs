//! RBAC: what roles and bindings allow, the wording of refusals, the default roles, and reviews.

use http::Method;
use kennel_server::request::User;
use serde_json::{Value, json};

use crate::fixture::{Answer, MAPS, MERGE, TestServer, map, request};

pub(crate) const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
pub(crate) const BINDINGS: &str =
    "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
pub(crate) const CLUSTER_ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
pub(crate) const CLUSTER_BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
const REVIEWS: &str = "/apis/authorization.k8s.io/v1";

pub(crate) fn user(name: &str) -> User {
    User::authenticated(name, Vec::new())
}

/// A request by a user, `METHOD path`.
pub(crate) async fn ask(
    server: &TestServer,
    user: &User,
    what: &str,
    body: Option<&Value>,
) -> Answer {
    let (method, path) = what.split_once(' ').unwrap();
    let method: Method = method.parse().unwrap();
    let mut request = request(method.clone(), path, body);
    if method == Method::PATCH {
        let kind = MERGE.parse().unwrap();
        request.headers_mut().insert("content-type", kind);
    }
    server.send_as(request, user.clone()).await
}

pub(crate) fn rule(verbs: &[&str], group: &str, resources: &[&str]) -> Value {
    json!({"verbs": verbs, "apiGroups": [group], "resources": resources})
}

pub(crate) fn role(name: &str, rules: &[Value]) -> Value {
    json!({"metadata": {"name": name}, "rules": rules})
}

/// A binding of `Kind/name` to a user.
pub(crate) fn binding(name: &str, role: &str, to: &str) -> Value {
    let (kind, role) = role.split_once('/').unwrap();
    json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": [{"kind": "User", "name": to, "apiGroup": "rbac.authorization.k8s.io"}],
    })
}

#[tokio::test]
async fn bindings_and_their_deletion_apply_to_the_next_request() {
    let (server, ann) = (TestServer::new().await, user("ann"));
    let list = format!("GET {MAPS}");
    let refused = ask(&server, &ann, &list, None).await.is(403);
    assert_eq!(
        refused["message"],
        "configmaps is forbidden: User \"ann\" cannot list resource \"configmaps\" in API group \"\" in \
         the namespace \"default\""
    );
    let reader = role("reader", &[rule(&["get", "list"], "", &["configmaps"])]);
    server.post(ROLES, &reader).await.is(201);
    for _ in 0..20 {
        server
            .post(BINDINGS, &binding("b", "Role/reader", "ann"))
            .await
            .is(201);
        ask(&server, &ann, &list, None).await.is(200);
        ask(
            &server,
            &ann,
            &format!("POST {MAPS}"),
            Some(&map("m", &json!({}))),
        )
        .await
        .is(403);
        ask(&server, &ann, "GET /api/v1/configmaps", None)
            .await
            .is(403);
        ask(&server, &user("bob"), &list, None).await.is(403);
        server.delete(&format!("{BINDINGS}/b")).await.is(200);
        ask(&server, &ann, &list, None).await.is(403);
    }
}

#[tokio::test]
async fn rules_distinguish_names_subresources_and_paths() {
    let (server, ann) = (TestServer::new().await, user("ann"));
    server.map("mine", &json!({})).await;
    server.map("other", &json!({})).await;
    let mut named = rule(&["get", "list", "update"], "", &["configmaps"]);
    named["resourceNames"] = json!(["mine"]);
    let rules = [
        named,
        rule(&["get"], "", &["pods/log"]),
        rule(&["get"], "", &["namespaces"]),
        json!({"verbs": ["get"], "nonResourceURLs": ["/metrics"]}),
    ];
    server
        .post(CLUSTER_ROLES, &role("some", &rules))
        .await
        .is(201);
    server
        .post(CLUSTER_BINDINGS, &binding("b", "ClusterRole/some", "ann"))
        .await
        .is(201);
    let select = "?fieldSelector=metadata.name%3D";
    for (what, code) in [
        (format!("GET {MAPS}/mine"), 200),
        (format!("GET {MAPS}/other"), 403),
        (format!("GET {MAPS}"), 403),
        (format!("GET {MAPS}{select}mine"), 200),
        (format!("GET {MAPS}{select}other"), 403),
        (format!("DELETE {MAPS}{select}mine"), 403),
        ("GET /api/v1/namespaces/default/pods/p".to_owned(), 403),
        ("GET /api/v1/namespaces/default/pods/p/log".to_owned(), 404),
        ("GET /api/v1/namespaces/default".to_owned(), 200),
        ("GET /api/v1/namespaces".to_owned(), 403),
        ("GET /metrics".to_owned(), 200),
        ("GET /metrics/more".to_owned(), 403),
        ("GET /apis".to_owned(), 200),
        ("GET /openapi/v3".to_owned(), 200),
    ] {
        assert_eq!(ask(&server, &ann, &what, None).await.code, code, "{what}");
    }
}

#[tokio::test]
async fn the_right_to_update_does_not_allow_create_on_update() {
    let (server, ann) = (TestServer::new().await, user("ann"));
    let lease = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l";
    let leases = |verbs: &[&str]| role("r", &[rule(verbs, "coordination.k8s.io", &["leases"])]);
    server.post(ROLES, &leases(&["update"])).await.is(201);
    server
        .post(BINDINGS, &binding("b", "Role/r", "ann"))
        .await
        .is(201);
    let body = json!({"metadata": {"name": "l"}, "spec": {}});
    for query in ["", "?dryRun=All"] {
        let refused = ask(&server, &ann, &format!("PUT {lease}{query}"), Some(&body))
            .await
            .is(403);
        assert_eq!(
            refused["message"],
            "leases.coordination.k8s.io \"l\" is forbidden: User \"ann\" cannot create resource \"leases\" \
             in API group \"coordination.k8s.io\" in the namespace \"default\""
        );
    }
    server.get(lease).await.is(404);
    let path = format!("{ROLES}/r");
    server
        .put(&path, &leases(&["update", "create"]))
        .await
        .is(200);
    let put = format!("PUT {lease}");
    ask(&server, &ann, &put, Some(&body)).await.is(201);
}

#[tokio::test]
async fn unauthorized_requests_for_unserved_resources_are_forbidden() {
    let server = TestServer::new().await;
    let path = "GET /apis/example.com/v1/namespaces/default/cats/tom";
    let refused = ask(&server, &user("ann"), path, None).await.is(403);
    assert_eq!(
        refused["message"],
        "cats.example.com \"tom\" is forbidden: User \"ann\" cannot get resource \"cats\" in API group \
         \"example.com\" in the namespace \"default\""
    );
    assert_eq!(
        refused["details"],
        json!({"name": "tom", "group": "example.com", "kind": "cats"})
    );
    ask(&server, &User::master("root"), path, None)
        .await
        .is(404);
    // Collections that are always empty have namespaces, too.
    server
        .post(BINDINGS, &binding("b", "ClusterRole/view", "ann"))
        .await
        .is(201);
    let local = "GET /apis/apps/v1/namespaces/default/deployments";
    ask(&server, &user("ann"), local, None).await.is(200);
    ask(&server, &user("ann"), "GET /apis/apps/v1/deployments", None)
        .await
        .is(403);
    let elsewhere = "GET /apis/apps/v1/namespaces/kube-system/deployments";
    ask(&server, &user("ann"), elsewhere, None).await.is(403);
}

#[tokio::test]
async fn a_binding_to_a_missing_role_is_reported() {
    let server = TestServer::new().await;
    let lost = binding("b", "ClusterRole/lost", "ann");
    server.post(CLUSTER_BINDINGS, &lost).await.is(201);
    let refused = ask(&server, &user("ann"), "GET /api/v1/nodes", None)
        .await
        .is(403);
    assert_eq!(
        refused["message"],
        "nodes is forbidden: User \"ann\" cannot list resource \"nodes\" in API group \"\" at the cluster \
         scope: RBAC: clusterrole.rbac.authorization.k8s.io \"lost\" not found"
    );
}

#[tokio::test]
async fn anonymous_users_get_health_and_version() {
    let server = TestServer::new().await;
    let nobody = User::anonymous();
    for path in ["/healthz", "/livez", "/readyz", "/livez/ping", "/version"] {
        let answer = ask(&server, &nobody, &format!("GET {path}"), None).await;
        assert_eq!(answer.code, 200, "{path}");
    }
    for path in [
        "/api",
        "/apis",
        "/metrics",
        "/api/v1/nodes",
        "/nothing",
        "/",
    ] {
        let answer = ask(&server, &nobody, &format!("GET {path}"), None).await;
        assert_eq!(answer.code, 401, "{path}");
    }
}

#[tokio::test]
async fn bindings_do_not_apply_to_anonymous_users() {
    let server = TestServer::new().await;
    let mut bind = binding("open", "ClusterRole/cluster-admin", "system:anonymous");
    let group = json!({"kind": "Group", "name": "system:unauthenticated",
        "apiGroup": "rbac.authorization.k8s.io"});
    bind["subjects"].as_array_mut().unwrap().push(group);
    server.post(CLUSTER_BINDINGS, &bind).await.is(201);
    let nobody = User::anonymous();
    for path in [MAPS, "/api", "/metrics"] {
        let answer = ask(&server, &nobody, &format!("GET {path}"), None).await;
        assert_eq!(answer.code, 401, "{path}");
    }
    // Impersonating an anonymous user gets 403, not 401.
    let mut request = request(Method::GET, MAPS, None);
    let name = "system:anonymous".parse().unwrap();
    request.headers_mut().insert("impersonate-user", name);
    let refused = server.send_as(request, User::master("root")).await.is(403);
    assert_eq!(
        refused["message"],
        "configmaps is forbidden: User \"system:anonymous\" cannot list resource \"configmaps\" in API group \
         \"\" in the namespace \"default\""
    );
}

#[tokio::test]
async fn default_roles_grant_their_documented_rights() {
    let server = TestServer::new().await;
    for name in ["view", "edit", "admin"] {
        let bind = binding(name, &format!("ClusterRole/{name}"), name);
        server.post(BINDINGS, &bind).await.is(201);
    }
    let table = [
        ("list pods", [true, true, true]),
        ("create pods", [false, true, true]),
        ("get secrets", [false, true, true]),
        ("create daemonsets.apps", [false, true, true]),
        ("get controllerrevisions.apps", [true, true, true]),
        (
            "create roles.rbac.authorization.k8s.io",
            [false, false, true],
        ),
        ("create serviceaccounts/token", [false, true, true]),
        ("update daemonsets/status.apps", [false, false, false]),
        ("get nodes", [false, false, false]),
    ];
    for (what, allowed) in table {
        for (name, allowed) in ["view", "edit", "admin"].into_iter().zip(allowed) {
            assert_eq!(
                may(&server, name, what, "default").await,
                allowed,
                "{name} {what}"
            );
            assert!(
                !may(&server, name, what, "kube-system").await,
                "{name} {what}"
            );
        }
    }
}

/// `verb resource[/subresource][.group]`
async fn may(server: &TestServer, name: &str, what: &str, namespace: &str) -> bool {
    let (verb, resource) = what.split_once(' ').unwrap();
    let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let asked = json!({
        "verb": verb, "group": group, "resource": resource, "subresource": subresource,
        "namespace": namespace,
    });
    let review = json!({"spec": {"user": name, "resourceAttributes": asked}});
    let path = format!("{REVIEWS}/subjectaccessreviews");
    let answer = server.post(&path, &review).await.is(201);
    answer["status"]["allowed"].as_bool().unwrap()
}

#[tokio::test]
async fn default_roles_are_reconciled_at_the_next_start() {
    let server = TestServer::new().await;
    let path = format!("{CLUSTER_ROLES}/system:basic-user");
    let original = server.get(&path).await.ok();
    let labels = &original["metadata"]["labels"];
    assert_eq!(labels["kubernetes.io/bootstrapping"], "rbac-defaults");
    let own = rule(&["get"], "", &["nodes"]);
    server
        .patch(MERGE, &path, &json!({"rules": [own]}))
        .await
        .ok();
    let binding = format!("{CLUSTER_BINDINGS}/system:basic-user");
    server
        .patch(MERGE, &binding, &json!({"subjects": null}))
        .await
        .ok();
    let auto = "rbac.authorization.kubernetes.io/autoupdate";
    let discovery = format!("{CLUSTER_ROLES}/system:discovery");
    let hands_off = json!({"rules": null, "metadata": {"annotations": {auto: "false"}}});
    server.patch(MERGE, &discovery, &hands_off).await.ok();
    server
        .delete(&format!("{CLUSTER_ROLES}/view"))
        .await
        .is(200);
    let server = server.reopen().await;
    let rules = server.get(&path).await.ok()["rules"].clone();
    assert_eq!(rules[0], own);
    assert_eq!(rules.as_array().unwrap().len(), 4, "{rules}");
    let subjects = server.get(&binding).await.ok()["subjects"].clone();
    assert_eq!(subjects[0]["name"], "system:authenticated");
    assert_eq!(server.get(&discovery).await.ok()["rules"], Value::Null);
    let view = server.get(&format!("{CLUSTER_ROLES}/view")).await.ok();
    assert!(view["rules"].as_array().unwrap().len() > 5, "{view}");
}

#[tokio::test]
async fn a_start_with_complete_roles_writes_nothing() {
    let server = TestServer::new().await;
    let before = server.revision().await;
    let server = server.reopen().await;
    assert_eq!(server.revision().await, before);
}

#[tokio::test]
async fn an_aggregated_role_follows_its_sources() {
    let server = TestServer::new().await;
    let label = "rbac.authorization.k8s.io/aggregate-to-view";
    let extra = |verbs: &[&str]| {
        let mut cats = role("cats", &[rule(verbs, "example.com", &["cats"])]);
        cats["metadata"]["labels"] = json!({label: "true"});
        cats
    };
    let mut watch = server
        .watch(&format!(
            "{CLUSTER_ROLES}?fieldSelector=metadata.name%3Dadmin"
        ))
        .await;
    let mut told = async |verb: Option<&str>| loop {
        let event = watch.next().await.expect("the watch goes on");
        let rules = event["object"]["rules"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let cats = rules
            .iter()
            .find(|rule| rule["resources"] == json!(["cats"]));
        if cats.map(|rule| rule["verbs"][0].as_str().unwrap()) == verb {
            return;
        }
    };
    told(None).await;
    server.post(CLUSTER_ROLES, &extra(&["get"])).await.is(201);
    told(Some("get")).await;
    server
        .put(&format!("{CLUSTER_ROLES}/cats"), &extra(&["list"]))
        .await
        .is(200);
    told(Some("list")).await;
    let unlabelled = json!({"metadata": {"labels": null}});
    server
        .patch(MERGE, &format!("{CLUSTER_ROLES}/cats"), &unlabelled)
        .await
        .ok();
    told(None).await;
    let mut own = role("own", &[]);
    own["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {"team": "a"}}]});
    server.post(CLUSTER_ROLES, &own).await.is(201);
    let relabelled = json!({"metadata": {"labels": {"team": "a", label: "true"}}});
    server
        .patch(MERGE, &format!("{CLUSTER_ROLES}/cats"), &relabelled)
        .await
        .ok();
    told(Some("list")).await;
    server
        .delete(&format!("{CLUSTER_ROLES}/cats"))
        .await
        .is(200);
    told(None).await;
    // The rules of an aggregated role are overwritten.
    let path = format!("{CLUSTER_ROLES}/admin");
    server
        .patch(
            MERGE,
            &path,
            &json!({"rules": [rule(&["get"], "x", &["cats"])]}),
        )
        .await
        .ok();
    told(Some("get")).await;
    told(None).await;
}

#[tokio::test]
async fn reviews_answer_with_reasons() {
    let server = TestServer::new().await;
    let reader = role("reader", &[rule(&["get"], "", &["configmaps"])]);
    server.post(ROLES, &reader).await.is(201);
    server
        .post(BINDINGS, &binding("b", "Role/reader", "ann"))
        .await
        .is(201);
    let asked = json!({"verb": "get", "resource": "configmaps", "namespace": "default"});
    let own = json!({"spec": {"resourceAttributes": asked}});
    let path = format!("POST {REVIEWS}/selfsubjectaccessreviews");
    let answer = ask(&server, &user("ann"), &path, Some(&own)).await.is(201);
    assert_eq!(answer["kind"], "SelfSubjectAccessReview");
    let reason = "RBAC: allowed by RoleBinding \"b/default\" of Role \"reader\" to User \"ann\"";
    let expected = json!({"allowed": true, "reason": reason});
    assert_eq!(answer["status"], expected);
    let answer = ask(&server, &user("bob"), &path, Some(&own)).await.is(201);
    assert_eq!(answer["status"], json!({"allowed": false}));
    let local = json!({"spec": {"user": "ann", "resourceAttributes": asked}});
    let path = format!("{REVIEWS}/namespaces/default/localsubjectaccessreviews");
    let answer = server.post(&path, &local).await.is(201);
    assert_eq!(answer["status"], expected);
    assert_eq!(answer["metadata"]["namespace"], "default");
    let other = format!("{REVIEWS}/namespaces/other/localsubjectaccessreviews");
    server.post(&other, &local).await.is(422);
    let url = json!({"spec": {"groups": ["system:monitoring"], "nonResourceAttributes": {
        "verb": "get", "path": "/metrics"}}});
    let answer = server
        .post(&format!("{REVIEWS}/subjectaccessreviews"), &url)
        .await
        .is(201);
    assert_eq!(
        answer["status"]["reason"],
        "RBAC: allowed by ClusterRoleBinding \"system:monitoring\" of ClusterRole \"system:monitoring\" to \
         Group \"system:monitoring\""
    );
    let nothing = json!({"spec": {"user": "a"}});
    let path = format!("{REVIEWS}/subjectaccessreviews");
    let empty = server.post(&path, &nothing).await;
    assert_eq!(
        empty.is(422)["message"],
        "SubjectAccessReview.authorization.k8s.io \"\" is invalid: spec.resourceAttributes: Invalid value: \
         null: exactly one of nonResourceAttributes or resourceAttributes must be specified"
    );
    // The right to a self review does not allow reviews of other users.
    let path = format!("POST {REVIEWS}/subjectaccessreviews");
    ask(&server, &user("ann"), &path, Some(&local))
        .await
        .is(403);
}

#[tokio::test]
async fn rules_reviews_list_everything() {
    let server = TestServer::new().await;
    server
        .post(
            BINDINGS,
            &binding("b", "ClusterRole/system:monitoring", "ann"),
        )
        .await
        .is(201);
    let path = format!("POST {REVIEWS}/selfsubjectrulesreviews");
    let asked = json!({"spec": {"namespace": "default"}});
    let status = ask(&server, &user("ann"), &path, Some(&asked))
        .await
        .is(201)["status"]
        .clone();
    assert_eq!(status["incomplete"], false);
    let rules = status["resourceRules"].as_array().unwrap();
    let basic = rules
        .iter()
        .any(|rule| rule["resources"] == json!(["selfsubjectreviews"]));
    assert!(basic, "{status}");
    let paths = status["nonResourceRules"].as_array().unwrap();
    assert!(
        paths
            .iter()
            .any(|rule| rule["nonResourceURLs"][0] == "/api"),
        "{status}"
    );
    let node = User::authenticated("system:node:n", vec!["system:nodes".to_owned()]);
    let status = ask(&server, &node, &path, Some(&asked)).await.is(201)["status"].clone();
    assert_eq!(status["incomplete"], true);
    let refused = ask(&server, &user("ann"), &path, Some(&json!({})))
        .await
        .is(400);
    assert_eq!(refused["message"], "no namespace on request");
}
