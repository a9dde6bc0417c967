//! Client certificates that are revoked: of users, of the administrator, of deleted nodes.

use http::Method;
use kennel_server::request::User;
use serde_json::{Value, json};

use super::fixture::{END_OF_BODY, Fixture};
use super::{CERTIFICATES, DAY};
use crate::fixture::{MAPS, NODES, map, node};

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
    fixture.server.stop().await;
}

#[tokio::test]
async fn a_second_revocation_ends_what_the_first_one_let_through() {
    let fixture = Fixture::new().await;
    let revoked_again = async |later: i64| {
        fixture.clock.advance(10);
        revoke(&fixture, "alice").await.ok();
        fixture.clock.advance(1);
        let own = fixture.issue("alice", "people");
        assert_eq!(fixture.code(&own).await, 201);
        fixture.clock.advance(later);
        revoke(&fixture, "alice").await.ok();
        assert_eq!(fixture.code(&own).await, 401, "{later} seconds later");
        assert_eq!(fixture.code(&fixture.issue("bob", "people")).await, 201);
    };
    // In the same second; and after the clock was set back, so that it is before the first one.
    revoked_again(-1).await;
    revoked_again(-60).await;
    fixture.server.stop().await;
}

#[tokio::test]
async fn each_kubeconfig_of_the_administrator_ends_the_one_before() {
    let fixture = Fixture::new().await;
    let path = format!("{CERTIFICATES}/reissue-admin");
    for later in [0, 0, -60, 0] {
        fixture.clock.advance(later);
        let old = fixture.admin();
        assert_eq!(fixture.code(&old).await, 201);
        fixture.ask(Method::POST, &path, None).await.ok();
        assert_eq!(fixture.code(&old).await, 401, "{later} seconds later");
        assert_eq!(fixture.code(&fixture.admin()).await, 201);
    }
    fixture.server.stop().await;
}

#[tokio::test]
async fn a_revocation_is_kept_until_no_authority_of_its_time_is_trusted() {
    let fixture = Fixture::new().await;
    // The signer issues certificates for a year; whoever has the authority's key may sign longer ones.
    let alice = fixture.sign_elsewhere("alice", "people", 3000);
    let bob = fixture.sign_elsewhere("bob", "people", 3000);
    fixture.clock.advance(10);
    revoke(&fixture, "alice").await.ok();
    assert_eq!(fixture.code(&alice).await, 401);
    let secrets =
        "/api/v1/namespaces/kube-system/secrets?fieldSelector=type=kennel.dev/revoked-user";
    let count = async || {
        let list = fixture.ask(Method::GET, secrets, None).await.ok();
        list["items"].as_array().unwrap().len()
    };
    fixture.advance(800).await;
    assert_eq!(count().await, 1);
    assert_eq!(fixture.code(&alice).await, 401);
    assert_eq!(fixture.code(&bob).await, 201);
    for action in ["rotate-ca", "retire-ca"] {
        assert_eq!(count().await, 1);
        let path = format!("{CERTIFICATES}/{action}");
        fixture.ask(Method::POST, &path, None).await.ok();
        fixture.advance(0).await;
    }
    assert_eq!(count().await, 0);
    assert_eq!(fixture.code(&alice).await, 401);
    fixture.server.stop().await;
}

#[tokio::test]
async fn watches_of_a_revoked_or_expired_certificate_end() {
    let fixture = Fixture::new().await;
    let authority = fixture.file("ca.crt");
    let mut open = Vec::new();
    for user in ["alice", "bob"] {
        let own = fixture.issue(user, "system:masters");
        let mut connection = fixture.connect(&authority, Some(&own)).await.unwrap();
        connection.watch(MAPS).await;
        connection.until("kube-root-ca.crt").await;
        open.push(connection);
    }
    let (mut bob, mut alice) = (open.pop().unwrap(), open.pop().unwrap());
    fixture.clock.advance(10);
    revoke(&fixture, "alice").await.ok();
    alice.until(END_OF_BODY).await;
    assert_eq!(alice.who_am_i().await, 401);
    // Others go on, until their certificate ends.
    let created = map("later", &json!({}));
    fixture
        .ask(Method::POST, MAPS, Some(&created))
        .await
        .is(201);
    bob.until("later").await;
    fixture.clock.advance(366 * DAY);
    bob.until(END_OF_BODY).await;
    fixture.server.stop().await;
}

#[tokio::test]
async fn a_damaged_revocation_revokes_everything_until_it_is_written_again() {
    let fixture = Fixture::new().await;
    let (alice, bob) = (
        fixture.issue("alice", "people"),
        fixture.issue("bob", "people"),
    );
    fixture.clock.advance(10);
    revoke(&fixture, "alice").await.ok();
    fixture.clock.advance(10);
    let later = fixture.issue("alice", "people");
    assert_eq!(fixture.code(&later).await, 201);
    let fixture = fixture
        .restarted_after(|dir| {
            let database = rusqlite::Connection::open(dir.join("kennel.db")).unwrap();
            let sql = "UPDATE kv SET value = X'7b' WHERE key LIKE '/registry/secrets/kube-system/revoked-user-%'";
            assert_eq!(database.execute(sql, []).unwrap(), 1);
        })
        .await;
    for (own, code) in [(&alice, 401), (&later, 401), (&bob, 201)] {
        assert_eq!(fixture.code(own).await, code);
    }
    revoke(&fixture, "alice").await.ok();
    fixture.clock.advance(1);
    assert_eq!(fixture.code(&later).await, 401);
    assert_eq!(fixture.code(&fixture.issue("alice", "people")).await, 201);
    fixture.server.stop().await;
}

#[tokio::test]
async fn a_claim_on_a_name_ends_when_the_node_exists() {
    let fixture = Fixture::new().await;
    let secrets = "/api/v1/namespaces/kube-system/secrets";
    for name in ["n1", "n2"] {
        let claim = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kennel.dev/node-claim",
            "metadata": {"name": format!("node-claim-{name}")},
            "stringData": {"node": name, "key": "k", "since": "2026-01-01T00:00:00Z"},
        });
        fixture
            .ask(Method::POST, secrets, Some(&claim))
            .await
            .is(201);
    }
    let created = fixture.ask(Method::POST, NODES, Some(&node("n1"))).await;
    created.is(201);
    fixture.advance(0).await;
    for (name, code) in [("n1", 404), ("n2", 200)] {
        let path = format!("{secrets}/node-claim-{name}");
        fixture.ask(Method::GET, &path, None).await.is(code);
    }
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
async fn the_old_certificate_of_a_node_that_was_deleted_and_created_again_has_no_power() {
    let fixture = Fixture::new().await;
    let old = fixture.issue("system:node:n1", "system:nodes");
    let authority = fixture.file("ca.crt");
    let mut open = fixture.connect(&authority, Some(&old)).await.unwrap();
    let create = async || {
        let created = fixture.ask(Method::POST, NODES, Some(&node("n1"))).await;
        created.is(201)["metadata"]["uid"].clone()
    };
    let first = create().await;
    assert_eq!(open.who_am_i().await, 201);
    let path = format!("{NODES}/n1");
    fixture.ask(Method::DELETE, &path, None).await.ok();
    assert_ne!(create().await, first);
    assert_eq!(open.who_am_i().await, 401);
    assert_eq!(fixture.code(&old).await, 401);
    fixture.clock.advance(1);
    let new = fixture.issue("system:node:n1", "system:nodes");
    assert_eq!(fixture.code(&new).await, 201);
    // Nor later, when what is obsolete was deleted.
    fixture.advance(100).await;
    assert_eq!(fixture.code(&old).await, 401);
    assert_eq!(fixture.code(&new).await, 201);
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
