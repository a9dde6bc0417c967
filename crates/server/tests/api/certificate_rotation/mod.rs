//! Certificates of a running server, over years: they are renewed, the CA is replaced with an overlap, what ends is warned
//! of, and what is revoked is worthless. The clock is the test's.

mod etcd;
mod fixture;
mod revocation;
mod unattended;

use http::Method;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, KeyPair};
use serde_json::{Value, json};

use kennel_server::request::User;

use self::fixture::{DAY, Fixture, MovedClock};

const CERTIFICATES: &str = "/kennel.dev/certificates";
const ROOT_CA: &str = "/api/v1/namespaces/default/configmaps/kube-root-ca.crt";

#[tokio::test]
async fn certificates_are_renewed_while_the_server_runs() {
    let fixture = Fixture::new().await;
    let (authority, first_admin) = (fixture.file("ca.crt"), fixture.admin());
    let mut open = fixture
        .connect(&authority, Some(&first_admin))
        .await
        .unwrap();
    let first_leaf = open.leaf();
    fixture.advance(274).await;
    assert_eq!(
        fixture.connect(&authority, None).await.unwrap().leaf(),
        first_leaf
    );
    // 89 days are left.
    fixture.advance(2).await;
    let second = fixture.connect(&authority, None).await.unwrap();
    assert_ne!(second.leaf(), first_leaf);
    // What is open stays open, and the old certificate of the administrator is valid until it ends.
    assert_eq!(open.who_am_i().await, 201);
    assert_ne!(fixture.admin(), first_admin);
    let keys = fixture.ask(Method::GET, "/openid/v1/jwks", None).await.ok();
    assert!(keys["keys"].as_array().unwrap().len() > 1, "{keys}");
    // After the end of the first ones, the server still serves.
    fixture.advance(100).await;
    assert!(fixture.connect(&authority, None).await.is_ok());
    assert_eq!(fixture.code(&fixture.admin()).await, 201);
    assert_eq!(open.who_am_i().await, 401);
    fixture.server.stop().await;
}

#[tokio::test]
async fn the_authority_is_replaced_before_it_ends_and_both_are_trusted_meanwhile() {
    let fixture = Fixture::new().await;
    let old = fixture.file("ca.crt");
    fixture.advance(3650 - 370).await;
    assert_eq!(fixture.file("ca.crt"), old);
    let old_admin = fixture.admin();
    fixture.advance(6).await;
    let new = fixture.file("ca.crt");
    assert_ne!(new, old);
    // Clients that know only one of them reach the server, and old certificates are valid.
    for authorities in [&old, &new] {
        let connected = fixture.connect(authorities, Some(&old_admin)).await;
        assert_eq!(connected.unwrap().who_am_i().await, 201);
    }
    assert_eq!(fixture.code(&fixture.admin()).await, 201);
    // Pods, kubeconfigs and agents learn both, the one that signs first.
    let published = fixture.ask(Method::GET, ROOT_CA, None).await.ok();
    assert_eq!(published["data"]["ca.crt"], format!("{new}{old}"));
    let listed = fixture.ask(Method::GET, CERTIFICATES, None).await.ok();
    let names = listed["certificates"].as_array().unwrap().iter();
    let names: Vec<&str> = names.map(|one| one["name"].as_str().unwrap()).collect();
    let own = ["server", "admin", "apiserver-kubelet-client"];
    assert_eq!(names, [&["ca", "ca-previous"], &own[..]].concat());
    // 340 days later the end of the old one is near, and said so; then it is over.
    fixture.advance(340).await;
    assert_eq!(expiring(&fixture).await, ["ca-previous"]);
    fixture.advance(30).await;
    assert!(fixture.connect(&old, None).await.is_err());
    assert!(fixture.connect(&new, None).await.is_ok());
    let published = fixture.ask(Method::GET, ROOT_CA, None).await.ok();
    assert_eq!(published["data"]["ca.crt"], new);
    fixture.server.stop().await;
}

#[tokio::test]
async fn an_administrator_replaces_the_authority_and_retires_the_old_one() {
    let fixture = Fixture::new().await;
    let (old, old_admin) = (fixture.file("ca.crt"), fixture.admin());
    let mut open = fixture.connect(&old, Some(&old_admin)).await.unwrap();
    let act = async |action: &str| {
        let path = format!("{CERTIFICATES}/{action}");
        fixture.ask(Method::POST, &path, Some(&json!({}))).await
    };
    let refused = act("retire-ca").await.fails(400, "BadRequest");
    assert_eq!(
        refused["message"],
        "no earlier certificate authority is trusted"
    );
    act("rotate-ca").await.ok();
    assert_ne!(fixture.file("ca.crt"), old);
    assert!(fixture.connect(&old, None).await.is_ok());
    assert_eq!(open.who_am_i().await, 201);
    act("retire-ca").await.ok();
    assert!(fixture.connect(&old, None).await.is_err());
    // Certificates of the retired authority are worthless, on open connections, too.
    assert_eq!(open.who_am_i().await, 401);
    assert_eq!(fixture.code(&old_admin).await, 401);
    assert_eq!(fixture.code(&fixture.admin()).await, 201);
    fixture.server.stop().await;
}

#[tokio::test]
async fn a_certificate_is_renewed_on_request() {
    let fixture = Fixture::new().await;
    let authority = fixture.file("ca.crt");
    let before = fixture.connect(&authority, None).await.unwrap().leaf();
    let admin = fixture.admin();
    let path = format!("{CERTIFICATES}/renew");
    let names = json!({"names": ["server"]});
    fixture.ask(Method::POST, &path, Some(&names)).await.ok();
    assert_ne!(
        fixture.connect(&authority, None).await.unwrap().leaf(),
        before
    );
    assert_eq!(fixture.admin(), admin);
    let wrong = json!({"names": ["serving"]});
    let refused = fixture.ask(Method::POST, &path, Some(&wrong)).await;
    let refused = refused.fails(400, "BadRequest");
    let words = "there is no certificate \"serving\": the names are server, admin, apiserver-kubelet-client, service-account";
    assert_eq!(refused["message"], words);
    // Only administrators may.
    let alice = User::authenticated("alice", Vec::new());
    for (method, path) in [(Method::GET, CERTIFICATES), (Method::POST, &path)] {
        let refused = fixture.ask_as(method, path, None, alice.clone()).await;
        refused.fails(403, "Forbidden");
    }
    fixture.server.stop().await;
}

/// The names of the certificates that are marked as ending soon.
async fn expiring(fixture: &Fixture) -> Vec<String> {
    let listed = fixture.ask(Method::GET, CERTIFICATES, None).await.ok();
    let all = listed["certificates"].as_array().unwrap().iter();
    let soon = all.filter(|one| one["expiring"] == true);
    soon.map(|one| one["name"].as_str().unwrap().to_owned())
        .collect()
}

async fn warnings(fixture: &Fixture) -> Vec<Value> {
    let path = "/api/v1/namespaces/default/events";
    let events = fixture.ask(Method::GET, path, None).await.ok();
    let all = events["items"].as_array().unwrap().iter();
    let ours = all.filter(|event| event["reason"] == "CertificateExpiring");
    ours.cloned().collect()
}

/// A CA that is not the server's own, and ends in 60 days.
fn foreign_authority(pki: &std::path::Path, clock: &MovedClock) {
    let pair = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params
        .distinguished_name
        .push(DnType::CommonName, "corporate");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let at = |days: i64| {
        let seconds = u64::try_from(clock.seconds() + days * DAY).unwrap();
        (std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds)).into()
    };
    (params.not_before, params.not_after) = (at(-1000), at(60));
    let pem = params.self_signed(&pair).unwrap().pem();
    std::fs::write(pki.join("ca.crt"), pem).unwrap();
    std::fs::write(pki.join("ca.key"), pair.serialize_pem()).unwrap();
}

#[tokio::test]
async fn what_ends_within_30_days_is_warned_of() {
    let fixture = Fixture::prepared(foreign_authority).await;
    fixture.advance(0).await;
    assert!(warnings(&fixture).await.is_empty());
    assert!(expiring(&fixture).await.is_empty());
    let ends = fixture.clock.seconds() + 60 * DAY;
    let page = fixture.ask(Method::GET, "/metrics", None).await;
    let line =
        format!("kennel_certificate_expiration_timestamp_seconds{{certificate=\"ca\"}} {ends}");
    assert!(page.text().contains(&line), "{}", page.text());
    fixture.advance(31).await;
    assert_eq!(expiring(&fixture).await, ["ca"]);
    let warnings = warnings(&fixture).await;
    let [ca] = &warnings[..] else {
        panic!("one warning: {warnings:?}");
    };
    let message = ca["message"].as_str().unwrap();
    let words = "the certificate authority of this server expires in 29 days";
    assert!(message.starts_with(words), "{message}");
    assert_eq!(
        (&ca["type"], &ca["involvedObject"]["kind"]),
        (&json!("Warning"), &json!("Service"))
    );
    fixture.server.stop().await;
}
