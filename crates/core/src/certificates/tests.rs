//! Tables of requests that are recognised and refused, after upstream's own.

use super::*;

fn strings(list: &[&str]) -> Vec<String> {
    list.iter().map(|text| (*text).to_owned()).collect()
}

/// What a machine with a bootstrap token asks for.
fn joining() -> CertificateRequest {
    CertificateRequest {
        username: "system:bootstrap:abcdef".to_owned(),
        usages: strings(&["digital signature", "key encipherment", "client auth"]),
        common_name: "system:node:n1".to_owned(),
        organisations: strings(&[NODES]),
        ..CertificateRequest::default()
    }
}

fn serving() -> CertificateRequest {
    CertificateRequest {
        username: "system:node:n1".to_owned(),
        usages: strings(&["digital signature", "key encipherment", "server auth"]),
        dns_names: strings(&["n1"]),
        ..joining()
    }
}

#[test]
fn requests_of_nodes_are_recognised() {
    let check = |change: fn(&mut CertificateRequest), expected: &[&str]| {
        let mut asked = joining();
        change(&mut asked);
        let found: Vec<&str> = asked.permissions().iter().map(|p| p.subresource).collect();
        assert_eq!(found, expected, "{asked:?}");
    };
    check(|_| {}, &["nodeclient"]);
    let own = |asked: &mut CertificateRequest| asked.username = "system:node:n1".to_owned();
    check(own, &["selfnodeclient", "nodeclient"]);
    let other = |asked: &mut CertificateRequest| asked.username = "system:node:n2".to_owned();
    check(other, &["nodeclient"]);
    let no_rsa = |asked: &mut CertificateRequest| {
        asked.usages = strings(&["client auth", "digital signature"]);
    };
    check(no_rsa, &["nodeclient"]);
    check(|asked| asked.organisations.clear(), &[]);
    check(|asked| asked.usages.push("server auth".to_owned()), &[]);
}

#[test]
fn what_a_nodes_client_certificate_may_be() {
    let check = |change: fn(&mut CertificateRequest), expected: Option<&str>| {
        let mut asked = joining();
        change(&mut asked);
        let found = asked.rejection(Signer::KubeletClient);
        assert_eq!(found.as_deref(), expected, "{asked:?}");
    };
    check(|_| {}, None);
    let organisation = Some("subject organization is not system:nodes");
    check(
        |asked| asked.organisations = strings(&["system:masters"]),
        organisation,
    );
    let both =
        |asked: &mut CertificateRequest| asked.organisations = strings(&[NODES, "system:masters"]);
    check(both, organisation);
    let prefix = Some("subject common name does not begin with system:node:");
    check(|asked| asked.common_name = "alice".to_owned(), prefix);
    check(|asked| asked.common_name.clear(), prefix);
    check(|asked| asked.common_name = NODE_USER.to_owned(), prefix);
    let dns = Some("DNS subjectAltNames are not allowed");
    check(|asked| asked.dns_names = strings(&["n1"]), dns);
    let ip = Some("IP subjectAltNames are not allowed");
    check(
        |asked| asked.addresses = vec!["10.0.0.1".parse().unwrap()],
        ip,
    );
    let email = Some("Email subjectAltNames are not allowed");
    check(|asked| asked.emails = strings(&["a@b.c"]), email);
    let uri = Some("URI subjectAltNames are not allowed");
    check(|asked| asked.uris = strings(&["spiffe://a"]), uri);
    let usages = Some("usages did not match [client auth digital signature key encipherment]");
    check(|asked| asked.usages = strings(&["client auth"]), usages);
    check(|asked| asked.usages.push("server auth".to_owned()), usages);
    let more = Some("subject may have an organization and a common name only");
    check(|asked| asked.more_in_subject = true, more);
}

#[test]
fn what_a_nodes_serving_certificate_may_be() {
    let check = |change: fn(&mut CertificateRequest), expected: Option<&str>| {
        let mut asked = serving();
        change(&mut asked);
        let found = asked.rejection(Signer::KubeletServing);
        assert_eq!(found.as_deref(), expected, "{asked:?}");
    };
    check(|_| {}, None);
    let nameless = Some("DNS or IP subjectAltName is required");
    check(|asked| asked.dns_names.clear(), nameless);
    let usages = Some("usages did not match [digital signature key encipherment server auth]");
    check(|asked| asked.usages.push("client auth".to_owned()), usages);
    let email = Some("Email subjectAltNames are not allowed");
    check(|asked| asked.emails = strings(&["a@b.c"]), email);
}

#[test]
fn what_a_users_certificate_may_be() {
    let check = |usages: &[&str], groups: &[&str], expected: Option<&str>| {
        let asked = CertificateRequest {
            usages: strings(usages),
            organisations: strings(groups),
            ..joining()
        };
        let found = asked.rejection(Signer::Client);
        assert_eq!(found.as_deref(), expected, "{asked:?}");
    };
    check(&["client auth"], &["wardens", "keepers"], None);
    check(
        &["client auth", "digital signature", "key encipherment"],
        &[],
        None,
    );
    let missing = Some("missing required usage for client certificate: client auth");
    check(&["digital signature"], &[], missing);
    let invalid = Some("invalid usage for client certificate: server auth");
    check(&["client auth", "server auth"], &[], invalid);
    let master = Some("subject organization may not be system:masters");
    check(&["client auth"], &["wardens", "system:masters"], master);
}

#[test]
fn other_signers_are_not_ours() {
    let check = |name: &str, expected| assert_eq!(Signer::from_name(name), expected, "{name}");
    check(
        "kubernetes.io/kubelet-serving",
        Some(Signer::KubeletServing),
    );
    check("kubernetes.io/legacy-unknown", None);
    check("example.com/signer", None);
}
