//! Authentication: tokens of service accounts, bootstrap tokens, reviews, and impersonation.

use bytes::Bytes;
use http::{Method, Request};
use kennel_server::request::{Caller, User};
use serde_json::{Value, json};

use crate::fixture::{Answer, NODES, PODS, TestServer, node, request};

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const WHOAMI: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const API: &str = "https://kubernetes.default.svc.cluster.local";

/// A request with further headers.
fn with(mut request: Request<Bytes>, headers: &[(&'static str, &str)]) -> Request<Bytes> {
    for (name, value) in headers {
        request.headers_mut().append(*name, value.parse().unwrap());
    }
    request
}

#[tokio::test]
async fn what_stores_nothing_has_no_table() {
    let server = TestServer::new().await;
    server.pod("p", "").await;
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let asked = || request(Method::POST, WHOAMI, Some(&json!({})));
    let either = format!("{table},application/json");
    let answered = server.send(with(asked(), &[("accept", &either)])).await;
    assert_eq!(answered.is(201)["kind"], "SelfSubjectReview");
    let access = "/apis/authorization.k8s.io/v1";
    for path in [
        WHOAMI,
        REVIEWS,
        &format!("{access}/selfsubjectaccessreviews"),
        &format!("{access}/selfsubjectrulesreviews"),
        &format!("{access}/subjectaccessreviews"),
        &format!("{access}/namespaces/default/localsubjectaccessreviews"),
        &format!("{ACCOUNTS}/default/token"),
        &format!("{PODS}/p/binding"),
        &format!("{PODS}/p/eviction"),
        "/api/v1/namespaces/default/bindings",
    ] {
        let asked = request(Method::POST, path, Some(&json!({})));
        let refused = server.send(with(asked, &[("accept", table)])).await;
        refused.fails(406, "NotAcceptable");
    }
    // The eviction was refused before anything happened.
    server.get(&format!("{PODS}/p")).await.ok();
}

/// The user that the server finds for a request with this token.
async fn whoami(server: &TestServer, token: &str) -> Answer {
    let bearer = format!("Bearer {token}");
    let asked = request(Method::POST, WHOAMI, Some(&json!({})));
    let asked = with(asked, &[("authorization", &bearer)]);
    server.send_as(asked, Caller::default()).await
}

/// The user that a token authenticates. The user has no rights, so the refusal names it.
#[track_caller]
fn named(answer: &Answer) -> String {
    let message = match answer.code {
        201 => return answer.json()["status"]["userInfo"]["username"].to_string(),
        403 => answer.json()["message"].to_string(),
        _ => panic!("{}: {}", answer.code, answer.text()),
    };
    let name = message.split("User \\\"").nth(1).unwrap();
    format!("\"{}\"", name.split("\\\"").next().unwrap())
}

async fn token_of(server: &TestServer, account: &str, spec: &Value) -> String {
    let path = format!("{ACCOUNTS}/{account}/token");
    let made = server.post(&path, &json!({"spec": spec})).await.is(201);
    made["status"]["token"].as_str().unwrap().to_owned()
}

async fn review(server: &TestServer, token: &str, audiences: &[&str]) -> Value {
    let review = json!({"spec": {"token": token, "audiences": audiences}});
    server.post(REVIEWS, &review).await.is(201)["status"].clone()
}

async fn account(server: &TestServer, name: &str) -> Value {
    let account = json!({"metadata": {"name": name}});
    server.post(ACCOUNTS, &account).await.is(201)
}

fn bound_to(kind: &str, object: &Value) -> Value {
    let metadata = &object["metadata"];
    json!({"boundObjectRef": {
        "apiVersion": "v1", "kind": kind, "name": metadata["name"], "uid": metadata["uid"],
    }})
}

#[tokio::test]
async fn a_token_proves_its_account_until_that_goes() {
    let server = TestServer::new().await;
    let made = account(&server, "a").await;
    let token = token_of(&server, "a", &json!({})).await;
    assert_eq!(
        named(&whoami(&server, &token).await),
        "\"system:serviceaccount:default:a\""
    );
    let status = review(&server, &token, &[]).await;
    assert_eq!(status["authenticated"], true);
    assert_eq!(status["audiences"], json!([API]));
    let user = &status["user"];
    assert_eq!(user["username"], "system:serviceaccount:default:a");
    assert_eq!(user["uid"], made["metadata"]["uid"]);
    assert_eq!(
        user["groups"],
        json!([
            "system:serviceaccounts",
            "system:serviceaccounts:default",
            "system:authenticated"
        ])
    );
    let id = &user["extra"]["authentication.kubernetes.io/credential-id"][0];
    assert!(id.as_str().unwrap().starts_with("JTI="), "{id}");
    server.delete(&format!("{ACCOUNTS}/a")).await.ok();
    whoami(&server, &token)
        .await
        .says(401, "Unauthorized", "Unauthorized");
    let gone = review(&server, &token, &[]).await;
    assert_eq!(gone["authenticated"], Value::Null);
    assert_eq!(
        gone["error"],
        "[invalid bearer token, serviceaccounts \"a\" not found]"
    );
    // A recreated account of the same name has another uid.
    account(&server, "a").await;
    whoami(&server, &token).await.fails(401, "Unauthorized");
    let other = review(&server, &token, &[]).await["error"].to_string();
    assert!(other.contains("does not match claim"), "{other}");
}

#[tokio::test]
async fn a_token_lives_no_longer_than_what_it_is_bound_to() {
    let server = TestServer::new().await;
    let machine = server.post(NODES, &node("n")).await.is(201);
    let pod = server.pod("p", "n").await;
    let secret = json!({"metadata": {"name": "s"}});
    let secret = server.post(SECRETS, &secret).await.is(201);
    let now = json!({"gracePeriodSeconds": 0});
    for (kind, object, path) in [
        ("Pod", &pod, format!("{PODS}/p")),
        ("Secret", &secret, format!("{SECRETS}/s")),
        ("Node", &machine, format!("{NODES}/n")),
    ] {
        let token = token_of(&server, "default", &bound_to(kind, object)).await;
        let user = review(&server, &token, &[]).await["user"].clone();
        let extra =
            |what: &str| user["extra"][format!("authentication.kubernetes.io/{what}")][0].clone();
        if kind == "Pod" {
            assert_eq!(extra("pod-name"), "p");
            assert_eq!(extra("pod-uid"), pod["metadata"]["uid"]);
        }
        if kind != "Secret" {
            assert_eq!(extra("node-name"), "n", "{kind}");
            assert_eq!(extra("node-uid"), machine["metadata"]["uid"], "{kind}");
        }
        named(&whoami(&server, &token).await);
        server.delete_with(&path, &now).await.ok();
        whoami(&server, &token).await.fails(401, "Unauthorized");
        assert_eq!(
            review(&server, &token, &[]).await["error"],
            "[invalid bearer token, service account token has been invalidated]",
            "{kind}"
        );
    }
}

#[tokio::test]
async fn a_pod_on_its_way_out_keeps_its_token() {
    let server = TestServer::new().await;
    let pod = server.pod("p", "n").await;
    let token = token_of(&server, "default", &bound_to("Pod", &pod)).await;
    server.delete(&format!("{PODS}/p")).await.ok();
    named(&whoami(&server, &token).await);
    // The node did not exist when the token was signed, so the token has only its name.
    let user = review(&server, &token, &[]).await["user"].clone();
    let extra = &user["extra"];
    assert_eq!(extra["authentication.kubernetes.io/node-name"][0], "n");
    assert_eq!(extra["authentication.kubernetes.io/node-uid"], Value::Null);
}

#[tokio::test]
async fn a_token_is_good_for_its_audience_alone() {
    let server = TestServer::new().await;
    let token = token_of(&server, "default", &json!({"audiences": ["vault", "bank"]})).await;
    whoami(&server, &token).await.fails(401, "Unauthorized");
    let status = review(&server, &token, &["bank", "shop"]).await;
    assert_eq!(status["authenticated"], true);
    assert_eq!(status["audiences"], json!(["bank"]));
    assert_eq!(
        review(&server, &token, &["shop"]).await["error"],
        "[invalid bearer token, token audiences [\"vault\" \"bank\"] is invalid for the target \
         audiences [\"shop\"]]"
    );
    assert_eq!(
        review(&server, &token, &[]).await["authenticated"],
        Value::Null
    );
}

#[tokio::test]
async fn tokens_are_asked_for_in_order() {
    let server = TestServer::new().await;
    let path = format!("{ACCOUNTS}/default/token");
    let check = async |body: Value, code: u16, reason: &str, message: &str| {
        server.post(&path, &body).await.says(code, reason, message);
    };
    let spec = |spec: Value| json!({"spec": spec});
    check(
        spec(json!({"expirationSeconds": 599})),
        422,
        "Invalid",
        "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid value: \
         599: may not specify a duration less than 10 minutes",
    )
    .await;
    check(
        spec(json!({"expirationSeconds": (1_i64 << 32) + 1})),
        422,
        "Invalid",
        "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid value: \
         4294967297: may not specify a duration larger than 2^32 seconds",
    )
    .await;
    check(
        json!({"metadata": {"name": "other"}}),
        422,
        "Invalid",
        "TokenRequest.authentication.k8s.io \"default\" is invalid: metadata.name: Invalid value: \
         \"other\": must match the service account name if specified",
    )
    .await;
    check(
        spec(
            json!({"boundObjectRef": {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d"}}),
        ),
        400,
        "BadRequest",
        "cannot bind token to object of type apps/v1, Kind=DaemonSet",
    )
    .await;
    check(
        spec(json!({"boundObjectRef": {"apiVersion": "v1", "kind": "Node", "name": "none"}})),
        404,
        "NotFound",
        "nodes \"none\" not found",
    )
    .await;
    account(&server, "other").await;
    let pod = server.pod("p", "").await;
    let path = format!("{ACCOUNTS}/other/token");
    server.post(&path, &spec(bound_to("Pod", &pod))).await.says(
        400,
        "BadRequest",
        "cannot bind token for serviceaccount \"other\" to pod running with different \
         serviceaccount name.",
    );
}

#[tokio::test]
async fn long_lives_are_shortened() {
    let server = TestServer::new().await;
    let path = format!("{ACCOUNTS}/default/token");
    let year = 365 * 24 * 3600;
    let body = json!({"spec": {"expirationSeconds": year + 1}});
    let answer = server.post(&path, &body).await;
    assert_eq!(answer.is(201)["spec"]["expirationSeconds"], year);
    assert_eq!(
        answer.warnings(),
        ["299 - \"requested expiration of 31536001 seconds shortened to 31536000 seconds\""]
    );
}

#[tokio::test]
async fn the_signing_keys_are_published() {
    let server = TestServer::new().await;
    let token = token_of(&server, "default", &json!({})).await;
    let keys = server.get("/openid/v1/jwks").await;
    assert_eq!(
        keys.header(http::header::CONTENT_TYPE),
        "application/jwk-set+json"
    );
    let header = token.split('.').next().unwrap();
    let header = base64_url(header);
    assert_eq!(keys.ok()["keys"][0]["kid"], header["kid"]);
    assert_eq!(keys.ok()["keys"][0]["alg"], header["alg"]);
    let issuer = server.get("/.well-known/openid-configuration").await.ok();
    assert_eq!(issuer["issuer"], API);
    assert_eq!(issuer["jwks_uri"], "https://192.0.2.1:6443/openid/v1/jwks");
    let asked = request(Method::GET, "/openid/v1/jwks", None);
    let stranger = server.send_as(asked, Caller::default()).await;
    stranger.fails(401, "Unauthorized");
}

fn base64_url(text: &str) -> Value {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(text);
    serde_json::from_slice(&bytes.unwrap()).unwrap()
}

const BOOTSTRAP: &str = "/api/v1/namespaces/kube-system/secrets";

fn bootstrap_secret(id: &str, more: &[(&str, &str)]) -> Value {
    let mut data = json!({
        "token-id": id, "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true",
    });
    for (key, value) in more {
        data[*key] = (*value).into();
    }
    json!({
        "metadata": {"name": format!("bootstrap-token-{id}")},
        "type": "bootstrap.kubernetes.io/token", "stringData": data,
    })
}

#[tokio::test]
async fn bootstrap_tokens_prove_bootstrappers() {
    let server = TestServer::new().await;
    let extra = [
        (
            "auth-extra-groups",
            "system:bootstrappers:kubeadm:default-node-token",
        ),
        ("expiration", "2999-01-01T00:00:00Z"),
    ];
    let secret = bootstrap_secret("abcdef", &extra);
    server.post(BOOTSTRAP, &secret).await.is(201);
    let status = review(&server, "abcdef.0123456789abcdef", &[]).await;
    assert_eq!(
        status["user"],
        json!({"username": "system:bootstrap:abcdef", "groups": [
            "system:bootstrappers", "system:bootstrappers:kubeadm:default-node-token",
            "system:authenticated",
        ]})
    );
    let who = whoami(&server, "abcdef.0123456789abcdef").await;
    assert_eq!(named(&who), "\"system:bootstrap:abcdef\"");
    whoami(&server, "abcdef.0123456789abcdee")
        .await
        .fails(401, "Unauthorized");
    server
        .delete(&format!("{BOOTSTRAP}/bootstrap-token-abcdef"))
        .await
        .ok();
    whoami(&server, "abcdef.0123456789abcdef")
        .await
        .fails(401, "Unauthorized");
}

#[tokio::test]
async fn malformed_bootstrap_tokens_do_not_authenticate() {
    let server = TestServer::new().await;
    for (id, key, value) in [
        ("expire", "expiration", "2020-01-01T00:00:00Z"),
        ("unread", "expiration", "soon"),
        ("unused", "usage-bootstrap-authentication", "false"),
        ("other0", "token-id", "other1"),
        ("groups", "auth-extra-groups", "system:masters"),
        ("empty0", "token-secret", ""),
    ] {
        let secret = bootstrap_secret(id, &[(key, value)]);
        server.post(BOOTSTRAP, &secret).await.is(201);
        let answer = whoami(&server, &format!("{id}.0123456789abcdef")).await;
        assert_eq!(answer.code, 401, "{id}: {}", answer.text());
    }
    let mut secret = bootstrap_secret("opaque", &[]);
    secret["type"] = "Opaque".into();
    server.post(BOOTSTRAP, &secret).await.is(201);
    let answer = whoami(&server, "opaque.0123456789abcdef").await;
    answer.fails(401, "Unauthorized");
    // Bootstrap tokens are secrets of kube-system only.
    let secret = bootstrap_secret("elsewh", &[]);
    server.post(SECRETS, &secret).await.is(201);
    let answer = whoami(&server, "elsewh.0123456789abcdef").await;
    answer.fails(401, "Unauthorized");
}

#[tokio::test]
async fn a_review_needs_a_token() {
    let server = TestServer::new().await;
    server.post(REVIEWS, &json!({"spec": {}})).await.says(
        400,
        "BadRequest",
        "token is required for TokenReview in authentication",
    );
    let status = review(&server, "nothing", &[]).await;
    assert_eq!(status, json!({"user": {}, "error": "invalid bearer token"}));
}

#[tokio::test]
async fn a_self_subject_review_returns_the_user() {
    let server = TestServer::new().await;
    let mut user = User::master("me");
    user.uid = "42".into();
    user.extra.insert("k".into(), vec!["v".into()]);
    let asked = request(Method::POST, WHOAMI, Some(&json!({})));
    let review = server.send_as(asked, user).await.is(201);
    assert!(review["metadata"]["creationTimestamp"].is_string());
    assert_eq!(
        review["status"]["userInfo"],
        json!({
            "username": "me", "uid": "42", "extra": {"k": ["v"]},
            "groups": ["system:masters", "system:authenticated"],
        })
    );
}

/// The user that a master impersonates.
async fn acting(server: &TestServer, headers: &[(&'static str, &str)]) -> Answer {
    let asked = request(Method::POST, WHOAMI, Some(&json!({})));
    server.send(with(asked, headers)).await
}

#[tokio::test]
async fn masters_may_impersonate_anybody() {
    let server = TestServer::new().await;
    let masters = ("impersonate-group", "system:masters");
    let check = async |headers: &[(&'static str, &str)], expected: Value| {
        let review = acting(&server, headers).await.is(201);
        assert_eq!(review["status"]["userInfo"], expected, "{headers:?}");
    };
    check(
        &[("impersonate-user", "bob"), masters],
        json!({"username": "bob", "groups": ["system:masters", "system:authenticated"]}),
    )
    .await;
    check(
        &[
            ("impersonate-user", "system:serviceaccount:a:b"),
            masters,
            ("impersonate-uid", "7"),
            ("impersonate-extra-scopes", "x"),
            ("impersonate-extra-scopes", "y"),
            ("impersonate-extra-example.com%2Fkey", "z"),
        ],
        json!({
            "username": "system:serviceaccount:a:b", "uid": "7",
            "groups": ["system:masters", "system:authenticated"],
            "extra": {"scopes": ["x", "y"], "example.com/key": ["z"]},
        }),
    )
    .await;
    acting(&server, &[("impersonate-group", "a")]).await.says(
        400,
        "BadRequest",
        "requested [{Group  a    }] without impersonating a user",
    );
}

#[tokio::test]
async fn an_impersonator_has_only_the_rights_of_the_impersonated_user() {
    let server = TestServer::new().await;
    let asked = with(
        request(Method::GET, SECRETS, None),
        &[("impersonate-user", "bob")],
    );
    server.send(asked).await.says(
        403,
        "Forbidden",
        "secrets is forbidden: User \"bob\" cannot list resource \"secrets\" in API group \"\" in \
         the namespace \"default\"",
    );
}

#[tokio::test]
async fn impersonation_needs_the_right_to_it() {
    let server = TestServer::new().await;
    let check = async |headers: &[(&'static str, &str)], message: &str| {
        let asked = with(request(Method::GET, SECRETS, None), headers);
        let alice = User::authenticated("alice", vec![]);
        let answer = server.send_as(asked, alice).await;
        answer.says(403, "Forbidden", message);
    };
    check(
        &[("impersonate-user", "bob")],
        "users \"bob\" is forbidden: User \"alice\" cannot impersonate resource \"users\" in API \
         group \"\" at the cluster scope",
    )
    .await;
    check(
        &[("impersonate-user", "system:serviceaccount:kube-system:x")],
        "serviceaccounts \"x\" is forbidden: User \"alice\" cannot impersonate resource \
         \"serviceaccounts\" in API group \"\" in the namespace \"kube-system\"",
    )
    .await;
    let asked = request(Method::GET, SECRETS, None);
    let asked = with(
        asked,
        &[
            ("impersonate-user", "a"),
            ("impersonate-group", "system:masters"),
        ],
    );
    let answer = server.send_as(asked, Caller::default()).await;
    answer.says(401, "Unauthorized", "Unauthorized");
}
