//! Client certificates that are revoked: of users, of the administrator, of deleted nodes.

use http::Method;
use kennel_server::request::User;
use serde_json::{Value, json};

use super::CERTIFICATES;
use super::fixture::Fixture;
use crate::fixture::{NODES, node};

async fn revoke(fixture: &Fixture, user: &str) -> crate::fixture::Answer {
    let path = format!("{CERTIFICATES}/revoke");
    fixture
        .ask(Method::POST, &path, Some(&json!({ "user": user })))
        .await
}

#[tokio::test]
async fn certificates_of_a_revoked_user_are_worthless_and_later_ones_are_not() {
    let fixture = Fixture::new().await;
    let (alice, bob) = (
        fixture.issue("alice", "people"),
        fixture.issue("bob", "people"),
    );
    let authority = fixture.file("ca.crt");
    let mut open = fixture.connect(&authority, Some(&alice)).await.unwrap();
    assert_eq!(open.who_am_i().await, 201);
    fixture.clock.advance(10);
    revoke(&fixture, "alice").await.ok();
    assert_eq!(open.who_am_i().await, 401);
    assert_eq!(fixture.code(&alice).await, 401);
    assert_eq!(fixture.code(&bob).await, 201);
    // From the next second on.
    fixture.clock.advance(1);
    assert_eq!(fixture.code(&fixture.issue("alice", "people")).await, 201);
    assert_eq!(fixture.code(&alice).await, 401);
    // It is forgotten when every such certificate has ended.
    let secrets =
        "/api/v1/namespaces/kube-system/secrets?fieldSelector=type=kennel.dev/revoked-user";
    let count = async || {
        let list = fixture.ask(Method::GET, secrets, None).await.ok();
        list["items"].as_array().unwrap().len()
    };
    fixture.advance(364).await;
    assert_eq!(count().await, 1);
    fixture.advance(3).await;
    assert_eq!(count().await, 0);
    fixture.server.stop().await;
}

#[tokio::test]
async fn the_administrator_gets_another_kubeconfig_and_the_old_one_stops_working() {
    let fixture = Fixture::new().await;
    let old = fixture.admin();
    let kubeconfig = || std::fs::read_to_string(&fixture.server.kubeconfig).unwrap();
    let before = kubeconfig();
    assert_eq!(fixture.code(&old).await, 201);
    let refused = revoke(&fixture, "kennel-admin")
        .await
        .fails(400, "BadRequest");
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("kennel certs reissue-admin"), "{message}");
    let path = format!("{CERTIFICATES}/reissue-admin");
    fixture.ask(Method::POST, &path, None).await.ok();
    assert_ne!(kubeconfig(), before);
    assert_eq!(fixture.code(&old).await, 401);
    assert_eq!(fixture.code(&fixture.admin()).await, 201);
    // The next one is not revoked either, though it is made in the same second.
    let path = format!("{CERTIFICATES}/rotate-ca");
    fixture.ask(Method::POST, &path, None).await.ok();
    assert_eq!(fixture.code(&fixture.admin()).await, 201);
    // Also where agents ask who may do what.
    let asked = async |issued: i64| -> Value {
        let review = json!({"spec": {
            "user": "kennel-admin", "groups": ["system:masters"],
            "extra": {"kennel.dev/certificate-issued-at": [issued.to_string()]},
            "resourceAttributes": {"verb": "create", "resource": "nodes", "subresource": "proxy", "name": "n"},
        }});
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        fixture.ask(Method::POST, path, Some(&review)).await.is(201)["status"].clone()
    };
    let now = fixture.clock.seconds();
    let revoked = json!({"allowed": false, "reason": "the client certificate is revoked"});
    assert_eq!(asked(now).await, revoked);
    assert_eq!(asked(now + 1).await["allowed"], true);
    fixture.server.stop().await;
}

#[tokio::test]
async fn deleting_a_node_ends_its_certificates() {
    let fixture = Fixture::new().await;
    let own = fixture.issue("system:node:n1", "system:nodes");
    let other = fixture.issue("system:node:n2", "system:nodes");
    for name in ["n1", "n2"] {
        fixture
            .ask(Method::POST, NODES, Some(&node(name)))
            .await
            .is(201);
    }
    assert_eq!(fixture.code(&own).await, 201);
    // A finalizer keeps the node, and its certificate.
    let path = format!("{NODES}/n1");
    let mut kept = fixture.ask(Method::GET, &path, None).await.ok();
    kept["metadata"]["finalizers"] = json!(["example.com/kept"]);
    fixture.ask(Method::PUT, &path, Some(&kept)).await.ok();
    fixture.ask(Method::DELETE, &path, None).await.ok();
    assert_eq!(fixture.code(&own).await, 201);
    let mut freed = fixture.ask(Method::GET, &path, None).await.ok();
    freed["metadata"]["finalizers"] = json!([]);
    fixture.ask(Method::PUT, &path, Some(&freed)).await.ok();
    assert_eq!(fixture.code(&own).await, 401);
    assert_eq!(fixture.code(&other).await, 201);
    // It cannot register again with it; with another it can.
    fixture
        .ask(Method::POST, NODES, Some(&node("n1")))
        .await
        .is(201);
    assert_eq!(fixture.code(&own).await, 401);
    fixture.clock.advance(1);
    let joined = fixture.issue("system:node:n1", "system:nodes");
    assert_eq!(fixture.code(&joined).await, 201);
    fixture.server.stop().await;
}

#[tokio::test]
async fn a_node_does_not_confirm_its_own_addresses() {
    let fixture = Fixture::new().await;
    let user = || User::authenticated("system:node:n1", vec!["system:nodes".to_owned()]);
    let mut object = node("n1");
    object["metadata"]["annotations"] = json!({"kennel.dev/confirmed-addresses": "10.0.0.1"});
    let created = fixture
        .ask_as(Method::POST, NODES, Some(&object), user())
        .await;
    created.fails(403, "Forbidden");
    let created = fixture
        .ask_as(Method::POST, NODES, Some(&node("n1")), user())
        .await;
    let mut stored = created.is(201);
    stored["metadata"]["annotations"] = object["metadata"]["annotations"].clone();
    let path = format!("{NODES}/n1");
    let changed = fixture
        .ask_as(Method::PUT, &path, Some(&stored), user())
        .await;
    changed.fails(403, "Forbidden");
    fixture.ask(Method::PUT, &path, Some(&stored)).await.ok();
    fixture.server.stop().await;
}
