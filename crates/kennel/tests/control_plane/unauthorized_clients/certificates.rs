//! Client certificates that prove nothing. The handshake takes them; the answer is a 401 like any other.

use std::time::{Duration, SystemTime};

use kennel_testkit::{Access, Deadline, eventually};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, date_time_ymd,
};
use serde_json::json;

use crate::unauthorized_clients::fixture::{
    SECRETS, Target, ask_with_token, known_as, unauthorized,
};

/// What would be a good certificate for this user, to be spoilt.
fn good(name: &str, groups: &[&str]) -> CertificateParams {
    let mut params = CertificateParams::default();
    let mut subject = DistinguishedName::new();
    // rcgen keeps one attribute of a type; the second organisation goes by its number.
    let types = [
        DnType::OrganizationName,
        DnType::CustomDnType(vec![2, 5, 4, 10]),
    ];
    for (group, kind) in groups.iter().zip(types) {
        subject.push(kind, *group);
    }
    subject.push(DnType::CommonName, name);
    params.distinguished_name = subject;
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2100, 1, 1);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    params
}

/// A certificate authority that calls itself as ours does.
fn impostor() -> (String, KeyPair) {
    let pair = KeyPair::generate().unwrap();
    let mut params = good("kennel-ca", &[]);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    (params.self_signed(&pair).unwrap().pem(), pair)
}

impl Target {
    fn showing(&self, cert_pem: &str, key_pem: &str) -> Access {
        let (address, data) = (self.kennel.address(), self.kennel.data_dir());
        Access::showing(address, &data, cert_pem, key_pem)
    }

    /// Access with such a certificate of this authority.
    fn issued(&self, params: &CertificateParams, ca_pem: &str, ca_key: KeyPair) -> Access {
        let pair = KeyPair::generate().unwrap();
        let issuer = Issuer::from_ca_cert_pem(ca_pem, ca_key).unwrap();
        let cert = params.signed_by(&pair, &issuer).unwrap();
        self.showing(&cert.pem(), &pair.serialize_pem())
    }

    /// Access with such a certificate of the server's own authority.
    fn with_certificate(&self, params: &CertificateParams) -> Access {
        let key = KeyPair::from_pem(&self.pki("ca.key")).unwrap();
        self.issued(params, &self.pki("ca.crt"), key)
    }
}

#[test]
fn a_good_certificate_names_user_and_groups() {
    let target = Target::new();
    let alice = target.with_certificate(&good("alice", &["wardens"]));
    known_as(&alice.ask("GET", SECRETS, b""), "alice");
    let master = target.with_certificate(&good("bob", &["wardens", "system:masters"]));
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let info = master.ask("POST", path, b"{}").json()["status"]["userInfo"].clone();
    assert_eq!(info["username"], "bob");
    assert_eq!(
        info["groups"],
        json!(["wardens", "system:masters", "system:authenticated"])
    );
    let id = &info["extra"]["authentication.kubernetes.io/credential-id"][0];
    let id = id.as_str().unwrap();
    assert_eq!((id.len(), &id[..11]), (11 + 64, "X509SHA256="));
}

#[test]
fn bad_certificates() {
    let target = Target::new();
    let masters = ["system:masters"];
    let refused = |access: &Access, attempt: &str| {
        unauthorized(&access.ask("GET", SECRETS, b""), attempt);
        // Not even what anonymous clients may read.
        unauthorized(&access.ask("GET", "/version", b""), attempt);
    };
    let (ca_pem, ca_key) = impostor();
    let access = target.issued(&good("root", &masters), &ca_pem, ca_key);
    refused(&access, "another authority of the same name");
    let pair = KeyPair::generate().unwrap();
    let own = good("root", &masters).self_signed(&pair).unwrap();
    let access = target.showing(&own.pem(), &pair.serialize_pem());
    refused(&access, "signed by itself");
    let mut params = good("root", &masters);
    params.not_after = date_time_ymd(2021, 1, 1);
    refused(&target.with_certificate(&params), "expired");
    let mut params = good("root", &masters);
    params.not_before = date_time_ymd(2099, 1, 1);
    refused(&target.with_certificate(&params), "not yet valid");
    let mut params = good("root", &masters);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    refused(&target.with_certificate(&params), "not for clients");
    let access = target.showing(&target.pki("server.crt"), &target.pki("server.key"));
    refused(&access, "the server's own");
}

#[test]
fn a_certificate_may_name_a_uid_and_only_plainly() {
    let target = Target::new();
    let with_uid = |uid: &str| {
        let mut params = good("bob", &["system:masters"]);
        let kind = DnType::CustomDnType(vec![1, 3, 6, 1, 4, 1, 57683, 2]);
        params.distinguished_name.push(kind, uid);
        target.with_certificate(&params)
    };
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let review = with_uid("4711").ask("POST", path, b"{}").json();
    assert_eq!(review["status"]["userInfo"]["uid"], "4711", "{review}");
    unauthorized(&with_uid("").ask("GET", SECRETS, b""), "an empty uid");
}

#[test]
fn a_nameless_certificate_is_none() {
    let target = Target::new();
    let nobody = target.with_certificate(&good("", &["system:masters"]));
    unauthorized(&nobody.ask("GET", SECRETS, b""), "nameless");
    assert_eq!(nobody.ask("GET", "/version", b"").code, 200);
}

#[test]
fn a_bad_certificate_does_not_spoil_a_good_token_nor_the_other_way_round() {
    let target = Target::new();
    let mut params = good("root", &["system:masters"]);
    params.not_after = date_time_ymd(2021, 1, 1);
    let expired = target.with_certificate(&params);
    let token = target.token("default", &json!({}));
    let account = "system:serviceaccount:default:default";
    known_as(&ask_with_token(&expired, &token), account);
    unauthorized(&ask_with_token(&expired, "no token"), "both bad");
    let alice = target.with_certificate(&good("alice", &[]));
    known_as(&ask_with_token(&alice, "no token"), "alice");
    known_as(&ask_with_token(&alice, &token), "alice");
}

#[test]
fn a_certificate_that_ends_ends_on_open_connections_too() {
    let target = Target::new();
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let mut params = good("alice", &[]);
    params.not_after = date_time_ymd(1970, 1, 1) + since_1970.unwrap() + Duration::from_secs(3);
    let alice = target.with_certificate(&params);
    let mut wire = alice.open().unwrap();
    let mut ask = || wire.ask("GET", SECRETS, "", b"").unwrap();
    known_as(&ask(), "alice");
    let last = eventually(Deadline::seconds(20), || {
        let reply = ask();
        if reply.code == 403 {
            return Err("still known");
        }
        Ok(reply)
    });
    unauthorized(&last, "ended meanwhile");
}
