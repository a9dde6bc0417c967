//! The certificates of nodes: renewal, expiry, another certificate authority, confirmed addresses.

use std::fs;

use kennel_testkit::{Access, Deadline, Kennel, eventually};
use rcgen::{CertificateParams, DistinguishedName, DnType, Issuer, KeyPair};

use super::fixture::{BINARY, Cluster, LEASES, Machine, cluster};

/// A node's certificate of this cluster that began and ends so many seconds from now.
fn certificate(cluster: &Cluster, node: &str, from: i64, to: i64) -> String {
    let pki = cluster.kennel.data_dir().join("pki");
    let read = |name: &str| fs::read_to_string(pki.join(name)).unwrap();
    let authority = KeyPair::from_pem(&read("ca.key")).unwrap();
    let authority = Issuer::from_ca_cert_pem(&read("ca.crt"), authority).unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    let subject = &mut params.distinguished_name;
    subject.push(DnType::OrganizationName, "system:nodes");
    subject.push(DnType::CommonName, format!("system:node:{node}"));
    let now = std::time::SystemTime::now();
    let at = |seconds: i64| {
        let by = std::time::Duration::from_secs(seconds.unsigned_abs());
        (if seconds < 0 { now - by } else { now + by }).into()
    };
    (params.not_before, params.not_after) = (at(from), at(to));
    params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate().unwrap();
    let signed = params.signed_by(&key, &authority).unwrap();
    format!("{}{}", signed.pem(), key.serialize_pem())
}

#[test]
fn a_certificate_is_replaced_before_it_ends_and_nobody_notices() {
    let cluster = cluster(&[]);
    let line = cluster.invitation();
    let mut machine = Machine::new();
    machine.start(&line, "n1");
    cluster.is_ready("n1");
    machine.stop();
    let file = machine.data().join("pki/client.pem");
    // Two thirds of its life are over: it is replaced within the next few seconds, while the agent runs.
    let short = certificate(&cluster, "n1", -36, 18);
    fs::write(&file, &short).unwrap();
    machine.start(&["agent"], "n1");
    eventually(Deadline::seconds(30), || {
        let now = fs::read_to_string(&file).unwrap();
        (now != short).then_some(()).ok_or("still the old one")
    });
    machine.says("got a new client certificate");
    // With the old one it could not renew its lease from some time on.
    for _ in 0..3 {
        cluster.renews("n1");
    }
    machine.stop();
    // One that has ended is good for nothing; only a token helps.
    fs::write(&file, certificate(&cluster, "n1", -60, -1)).unwrap();
    let heard = machine.refused(&["agent"], "n1");
    assert!(
        heard.contains("expired at") && heard.contains("kennel token create"),
        "{heard}"
    );
    // And the directory stays that node's.
    fs::write(&file, &short).unwrap();
    let heard = machine.refused(&["agent"], "n2");
    assert!(heard.contains("belongs to system:node:n1"), "{heard}");
    fs::write(&file, certificate(&cluster, "n1", -60, -1)).unwrap();
    let heard = machine.refused(&line, "n1");
    assert!(heard.contains("node n1 exists"), "{heard}");
    let mut line = cluster.invitation_with(&["--node", "n1", "--replace"]);
    // `start` names the node, too.
    let name = line.split_off(line.len() - 2);
    assert_eq!(name, ["--node-name", "n1"]);
    machine.start(&line, "n1");
    cluster.renews("n1");
}

#[test]
fn agents_follow_a_new_certificate_authority() {
    let cluster = cluster(&[]);
    let line = cluster.invitation();
    let mut machine = Machine::new();
    machine.start(&line, "n1");
    cluster.is_ready("n1");
    machine.says("got a new serving certificate");
    machine.kill();
    let pki = machine.data().join("pki");
    let read = |name: &str| fs::read_to_string(pki.join(name)).unwrap();
    let (client, serving) = (read("client.pem"), read("serving.pem"));
    let rotated = cluster
        .admin
        .ask("POST", "/kennel.dev/certificates/rotate-ca", b"{}");
    assert_eq!(rotated.code, 200, "{}", rotated.text());
    // It trusts only the old one at its start, and has new certificates of the new one soon.
    machine.start(&["agent"], "n1");
    machine.says("the certificate authorities of the cluster have changed");
    eventually(Deadline::seconds(60), || {
        let are_new = read("client.pem") != client && read("serving.pem") != serving;
        are_new.then_some(()).ok_or("still the old ones")
    });
    let admin = Access::admin(cluster.kennel.address(), &cluster.kennel.data_dir());
    let retired = admin.ask("POST", "/kennel.dev/certificates/retire-ca", b"{}");
    assert_eq!(retired.code, 200, "{}", retired.text());
    // Without the old one, and with the old line, whose hash is that of the old one.
    let renewed =
        || admin.ask("GET", &format!("{LEASES}/n1"), b"").json()["spec"]["renewTime"].clone();
    let before = renewed();
    machine.kill();
    machine.start(&line, "n1");
    eventually(Deadline::seconds(60), || {
        let now = renewed();
        (now.is_string() && now != before).then_some(()).ok_or(now)
    });
}

#[test]
fn a_node_serves_for_an_address_when_an_administrator_has_confirmed_it() {
    let kennel = Kennel::start_at(BINARY, &["up", "--nodes", "0"], "0.0.0.0:0");
    let admin = Access::admin(kennel.address(), &kennel.data_dir());
    let cluster = Cluster { kennel, admin };
    let mut machine = Machine::new();
    let mut line = cluster.invitation();
    // Not where its requests come from, as behind NAT.
    line.push("--node-ip=192.0.2.7".to_owned());
    machine.start(&line, "n1");
    machine.says("serving with a certificate for the node's name alone");
    let mut node = cluster.get("/api/v1/nodes/n1");
    node["metadata"]["annotations"]["kennel.dev/confirmed-addresses"] = "192.0.2.7".into();
    eventually(Deadline::seconds(30), || {
        let version = cluster.get("/api/v1/nodes/n1")["metadata"]["resourceVersion"].clone();
        node["metadata"]["resourceVersion"] = version;
        let reply = cluster
            .admin
            .ask("PUT", "/api/v1/nodes/n1", node.to_string().as_bytes());
        (reply.code == 200).then_some(()).ok_or(reply.text())
    });
    machine.says("got a new serving certificate");
}
