//! Certificates and etcd: the end of those that a server uses with it is warned of, and damaged revocations revoke.

use std::path::Path;
use std::time::{Duration, Instant, UNIX_EPOCH};

use http::Method;
use kennel_server::server::{EtcdConfig, EtcdTls};
use kennel_test_support::Etcd;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use serde_json::json;

use super::fixture::{DAY, Fixture, MovedClock, Pair};
use super::{CERTIFICATES, expiring, warnings};

/// Writes a certificate for this machine of so many days, and its key.
fn issue(dir: &Path, name: &str, issuer: &Issuer<'_, KeyPair>, from: i64, days: i64) {
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let at = |seconds: i64| UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap());
    params.not_before = at(from - 300).into();
    params.not_after = at(from + days * DAY).into();
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, issuer).unwrap();
    std::fs::write(dir.join(format!("{name}.pem")), certificate.pem()).unwrap();
    std::fs::write(dir.join(format!("{name}.key")), key.serialize_pem()).unwrap();
}

fn authority(dir: &Path) -> Issuer<'static, KeyPair> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    std::fs::write(dir.join("ca.pem"), certificate.pem()).unwrap();
    Issuer::new(params, key)
}

#[tokio::test]
async fn the_end_of_the_certificate_for_etcd_is_warned_of() {
    let (dir, clock) = (tempfile::tempdir().unwrap(), MovedClock::now());
    let (file, begin) = (|name: &str| dir.path().join(name), clock.seconds());
    let issuer = authority(dir.path());
    issue(dir.path(), "etcd", &issuer, begin, 60);
    issue(dir.path(), "client", &issuer, begin, 60);
    let flag = |name: &str, path: &Path| format!("--{name}={}", path.display());
    let arguments = [
        flag("cert-file", &file("etcd.pem")),
        flag("key-file", &file("etcd.key")),
        flag("trusted-ca-file", &file("ca.pem")),
        "--client-cert-auth".to_owned(),
    ];
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let Some(etcd) = Etcd::start_with(&arguments) else {
        return;
    };
    let tls = EtcdTls {
        ca_file: file("ca.pem"),
        client: Some((file("client.pem"), file("client.key"))),
    };
    let config = EtcdConfig {
        endpoints: etcd.store().parse().unwrap(),
        tls: Some(tls),
        user: None,
        may_lose_fields: Vec::new(),
    };
    let fixture = Fixture::on_etcd(clock, config).await;
    fixture.advance(29).await;
    assert!(expiring(&fixture).await.is_empty());
    let page = fixture.ask(Method::GET, "/metrics", None).await;
    let metric = "kennel_certificate_expiration_timestamp_seconds";
    let ends = begin + 60 * DAY;
    let line = format!("{metric}{{certificate=\"etcd-client\"}} {ends}\n");
    assert!(page.text().contains(&line), "{}", page.text());
    assert!(page.text().contains("certificate=\"etcd-ca\""));

    fixture.advance(2).await;
    assert_eq!(expiring(&fixture).await, ["etcd-client"]);
    let listed = fixture.ask(Method::GET, CERTIFICATES, None).await.ok();
    let mut all = listed["certificates"].as_array().unwrap().iter();
    let client = all.find(|one| one["name"] == "etcd-client").unwrap();
    assert_eq!(client["file"], json!(file("client.pem")));
    let events = warnings(&fixture).await;
    let [event] = &events[..] else {
        panic!("one warning: {events:?}");
    };
    let message = event["message"].as_str().unwrap();
    let words = "the client certificate of this server for etcd expires in 29 days";
    assert!(message.starts_with(words), "{message}");
    assert!(message.contains("client.pem"), "{message}");

    issue(dir.path(), "client", &issuer, begin, 120);
    assert!(expiring(&fixture).await.is_empty());
    fixture.server.stop().await;
}

async fn until_code(fixture: &Fixture, shown: &Pair, code: u16) {
    let deadline = Instant::now() + Duration::from_mins(1);
    while fixture.code(shown).await != code {
        assert!(Instant::now() < deadline, "no {code} in time");
    }
}

/// While the server runs: no start finds it.
#[tokio::test]
async fn a_revocation_that_etcd_damages_revokes_everything_of_the_user() {
    let Some(etcd) = Etcd::start_in_memory() else {
        return;
    };
    let config = EtcdConfig {
        endpoints: etcd.store().parse().unwrap(),
        tls: None,
        user: None,
        may_lose_fields: Vec::new(),
    };
    let fixture = Fixture::on_etcd(MovedClock::now(), config).await;
    let old = fixture.issue("alice", "people");
    let path = format!("{CERTIFICATES}/revoke");
    let revoked = fixture
        .ask(Method::POST, &path, Some(&json!({"user": "alice"})))
        .await;
    revoked.ok();
    fixture.clock.advance(10);
    let new = fixture.issue("alice", "people");
    let codes = (fixture.code(&old).await, fixture.code(&new).await);
    assert_eq!(codes, (401, 201));

    let keys = etcd.ctl(&["get", "/registry/secrets/", "--prefix", "--keys-only"]);
    let key = keys.lines().find(|key| key.contains("revoked-user-"));
    let key = key.expect("the revocation is stored");
    etcd.ctl(&["put", key, "{"]);
    until_code(&fixture, &new, 401).await;
    assert_eq!(fixture.code(&old).await, 401);
    let bob = fixture.issue("bob", "people");
    assert_eq!(fixture.code(&bob).await, 201);
    // Discarded.
    etcd.ctl(&["del", key]);
    until_code(&fixture, &new, 201).await;
    fixture.server.stop().await;
}
